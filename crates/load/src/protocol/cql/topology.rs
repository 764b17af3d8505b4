//! The ring of a cluster, as its nodes tell it.

use super::open::{Link, MOST_BYTES_OF_ROWS};
use super::reader::{Reader, malformed};
use crate::error::Fault;
use crate::protocol::cluster::{Cluster, Ring};
use crate::protocol::{Access, Wire};

const PARTITIONER: &str = "org.apache.cassandra.dht.Murmur3Partitioner";
const LOCAL: &str = "SELECT host_id, data_center, rack, tokens, partitioner FROM system.local";
const PEERS: &str = "SELECT host_id, data_center, rack, tokens FROM system.peers";
const KEYSPACES: &str = "SELECT keyspace_name, replication FROM system_schema.keyspaces";

/// A node and its tokens.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Host {
    id: Vec<u8>,
    data_center: String,
    rack: String,
    tokens: Vec<i64>,
    /// Its place among the addresses; `None`: it is not one of them.
    node: Option<u16>,
}

/// How many nodes have each row.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Replication {
    Simple(usize),
    /// In each data center.
    Network(Vec<(String, usize)>),
}

/// Asks each node for itself, and the first one for all others and for keyspaces. `None`: rows are placed otherwise
/// than by Murmur3.
///
/// # Errors
/// The place of the node that did not answer so, and what it did.
pub(super) fn discover(
    wires: &mut [Wire],
    access: &Access,
) -> Result<Option<Cluster>, (usize, Fault)> {
    let mut answers = Answers::default();
    for (node, wire) in wires.iter_mut().enumerate() {
        if !answers.add(node, wire, access).map_err(|fault| (node, fault))? {
            return Ok(None);
        }
    }
    answers.cluster().map(Some).map_err(|fault| (0, fault))
}

/// Answers of nodes: of each on itself, of the first one on its peers and on keyspaces.
#[derive(Default)]
struct Answers {
    hosts: Vec<Host>,
    peers: Vec<u8>,
    keyspaces: Vec<u8>,
}

impl Answers {
    /// Whether the node places rows by Murmur3.
    fn add(&mut self, node: usize, wire: &mut Wire, access: &Access) -> Result<bool, Fault> {
        let mut link = Link::log_in(wire, access)?;
        let local = link.carry_out(LOCAL, MOST_BYTES_OF_ROWS)?;
        let rows = Reader(&local).rows()?;
        let [row] = rows.as_slice() else { return Err(malformed("not one row of system.local")) };
        if row.last().copied().flatten() != Some(PARTITIONER.as_bytes()) {
            return Ok(false);
        }
        self.hosts.extend(host(row, Some(node as u16))?);
        if node == 0 {
            self.peers = link.carry_out(PEERS, MOST_BYTES_OF_ROWS)?;
            self.keyspaces = link.carry_out(KEYSPACES, MOST_BYTES_OF_ROWS)?;
        }
        Ok(true)
    }

    fn cluster(mut self) -> Result<Cluster, Fault> {
        for row in Reader(&self.peers).rows()? {
            let known = |peer: &Host| self.hosts.iter().any(|host| host.id == peer.id);
            let peer = host(&row, None)?.filter(|peer| !known(peer));
            self.hosts.extend(peer);
        }
        let mut cluster = Cluster::default();
        for row in Reader(&self.keyspaces).rows()? {
            let [Some(name), Some(replication)] = row.as_slice() else { continue };
            if let Some(replication) = replicated(replication)? {
                let name = String::from_utf8_lossy(name).into_owned();
                cluster.rings.push((name, ring(&self.hosts, &replication)));
            }
        }
        Ok(cluster)
    }
}

/// `None`: a node that has not joined yet.
fn host(row: &[Option<&[u8]>], node: Option<u16>) -> Result<Option<Host>, Fault> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let [Some(id), Some(data_center), Some(rack), Some(tokens), ..] = row else { return Ok(None) };
    let tokens = Reader(tokens).elements(1)?.into_iter().map(|token| text(token).parse());
    let tokens =
        tokens.collect::<Result<_, _>>().map_err(|_| malformed("a token that is no number"))?;
    Ok(Some(Host {
        id: id.to_vec(),
        data_center: text(data_center),
        rack: text(rack),
        tokens,
        node,
    }))
}

/// `None`: a strategy that places no rows on the ring.
fn replicated(map: &[u8]) -> Result<Option<Replication>, Fault> {
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    // `3/1`: one of three is transient.
    let number = |bytes: &[u8]| text(bytes).split('/').next().and_then(|text| text.parse().ok());
    let pairs = Reader(map).elements(2)?;
    let (pairs, _) = pairs.as_chunks::<2>();
    let of = |name: &[u8]| pairs.iter().find(|[key, _]| *key == name).map(|[_, value]| *value);
    let class = of(b"class").map(text).unwrap_or_default();
    Ok(match class.rsplit('.').next() {
        Some("SimpleStrategy") => {
            of(b"replication_factor").and_then(number).map(Replication::Simple)
        }
        Some("NetworkTopologyStrategy") => Some(Replication::Network(
            pairs
                .iter()
                .filter(|[key, _]| *key != b"class")
                .filter_map(|[key, value]| Some((text(key), number(value)?)))
                .collect(),
        )),
        _ => None,
    })
}

fn ring(hosts: &[Host], replication: &Replication) -> Ring {
    let mut owners: Vec<(i64, &Host)> =
        hosts.iter().flat_map(|host| host.tokens.iter().map(move |&token| (token, host))).collect();
    owners.sort_unstable_by_key(|&(token, _)| token);
    let replicas_from = |place: usize| {
        let onward = owners[place..].iter().chain(&owners[..place]).map(|&(_, host)| host);
        let found = match replication {
            Replication::Simple(count) => first_hosts(onward, *count),
            Replication::Network(counts) => {
                let of_one = |(center, count): &(String, usize)| {
                    first_racks(onward.clone().filter(|host| host.data_center == *center), *count)
                };
                counts.iter().flat_map(of_one).collect()
            }
        };
        found.into_iter().filter_map(|host| host.node).collect()
    };
    Ring {
        replicas: (0..owners.len()).map(replicas_from).collect(),
        ends: owners.iter().map(|&(token, _)| token).collect(),
    }
}

/// `SimpleStrategy`: the next hosts along the ring.
fn first_hosts<'a>(onward: impl Iterator<Item = &'a Host>, count: usize) -> Vec<&'a Host> {
    let mut found: Vec<&Host> = Vec::new();
    for host in onward {
        if found.len() == count {
            break;
        }
        if !found.iter().any(|one| one.id == host.id) {
            found.push(host);
        }
    }
    found
}

/// `NetworkTopologyStrategy` within one data center: a rack has a second row only where there are too few racks.
fn first_racks<'a>(onward: impl Iterator<Item = &'a Host> + Clone, count: usize) -> Vec<&'a Host> {
    let mut racks: Vec<&str> = onward.clone().map(|host| host.rack.as_str()).collect();
    racks.sort_unstable();
    racks.dedup();
    let mut repeats = count.saturating_sub(racks.len());
    let mut found: Vec<&Host> = Vec::new();
    for host in onward {
        if found.len() == count {
            break;
        }
        if found.iter().any(|one| one.id == host.id) {
            continue;
        }
        if found.iter().any(|one| one.rack == host.rack) {
            if repeats == 0 {
                continue;
            }
            repeats -= 1;
        }
        found.push(host);
    }
    found
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Four nodes, of which the last has no address: tokens 0, 10, 20, 30, and 5 of the first.
    fn hosts() -> Vec<Host> {
        let one = |number: u8, center: &str, rack: &str, tokens: &[i64]| Host {
            id: vec![number],
            data_center: center.to_owned(),
            rack: rack.to_owned(),
            tokens: tokens.to_vec(),
            node: (number < 3).then_some(number.into()),
        };
        vec![
            one(0, "a", "r1", &[0, 5]),
            one(1, "a", "r1", &[10]),
            one(2, "a", "r2", &[20]),
            one(3, "b", "r1", &[30]),
        ]
    }

    fn nodes(replication: &Replication) -> Vec<Vec<u16>> {
        ring(&hosts(), replication).replicas.iter().map(|nodes| nodes.to_vec()).collect()
    }

    #[test]
    fn simple_takes_the_next_hosts_and_no_host_twice() {
        assert_eq!(ring(&hosts(), &Replication::Simple(1)).ends, [0, 5, 10, 20, 30]);
        assert_eq!(nodes(&Replication::Simple(1)), [vec![0], vec![0], vec![1], vec![2], vec![]]);
        let two = [vec![0, 1], vec![0, 1], vec![1, 2], vec![2], vec![0]];
        assert_eq!(nodes(&Replication::Simple(2)), two);
        assert_eq!(nodes(&Replication::Simple(9))[2], [1, 2, 0], "there are no more");
    }

    #[test]
    fn network_takes_other_racks_first_in_each_data_center() {
        let of = |counts: &[(&str, usize)]| {
            let counts = counts.iter().map(|&(name, count)| (name.to_owned(), count)).collect();
            nodes(&Replication::Network(counts))
        };
        assert_eq!(of(&[("a", 1), ("b", 1)]), [vec![0], vec![0], vec![1], vec![2], vec![0]]);
        assert_eq!(of(&[("a", 2)]), [vec![0, 2], vec![0, 2], vec![1, 2], vec![2, 0], vec![0, 2]]);
        assert_eq!(of(&[("a", 3)])[1], [0, 1, 2], "one rack has two");
        assert!(of(&[("nowhere", 1)]).iter().all(Vec::is_empty));
    }

    #[test]
    fn replication_is_read_as_keyspaces_have_it() {
        let map = |pairs: &[(&str, &str)]| {
            let mut bytes = (pairs.len() as u32).to_be_bytes().to_vec();
            for text in pairs.iter().flat_map(|&(key, value)| [key, value]) {
                bytes.extend_from_slice(&(text.len() as u32).to_be_bytes());
                bytes.extend_from_slice(text.as_bytes());
            }
            replicated(&bytes).expect("well-formed")
        };
        let simple = "org.apache.cassandra.locator.SimpleStrategy";
        let found = map(&[("class", simple), ("replication_factor", "3")]);
        assert_eq!(found, Some(Replication::Simple(3)));
        let network = "org.apache.cassandra.locator.NetworkTopologyStrategy";
        let found = map(&[("class", network), ("dc1", "3/1"), ("dc2", "2")]);
        let counts = vec![("dc1".to_owned(), 3), ("dc2".to_owned(), 2)];
        assert_eq!(found, Some(Replication::Network(counts)));
        assert_eq!(map(&[("class", "org.apache.cassandra.locator.LocalStrategy")]), None);
    }

    proptest! {
        #[test]
        fn no_bytes_make_it_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = replicated(&bytes);
            let cell = Some(bytes.as_slice());
            let _ = host(&[cell, cell, cell, cell], None);
        }
    }
}
