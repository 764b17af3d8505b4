//! Which node of a cluster has which rows, so that requests go to a node with their row.

/// Which nodes have a row, for each keyspace.
#[derive(Debug, Default)]
pub struct Cluster {
    pub rings: Vec<(String, Ring)>,
}

impl Cluster {
    #[must_use]
    pub fn ring(&self, keyspace: &str) -> Option<&Ring> {
        self.rings.iter().find(|(name, _)| name == keyspace).map(|(_, ring)| ring)
    }
}

/// Ends of a ring's ranges, ascending, and the nodes that have each, as indexes into the plan's addresses.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Ring {
    pub ends: Vec<i64>,
    pub replicas: Vec<Box<[u16]>>,
}

impl Ring {
    /// Nodes that have a token; empty if none of them has an address.
    #[must_use]
    pub fn replicas(&self, token: i64) -> &[u16] {
        let place = self.ends.partition_point(|&end| end < token);
        let first = self.replicas.first();
        self.replicas.get(place).or(first).map_or(&[], |replicas| replicas)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_ends_with_its_token_and_the_first_goes_round() {
        let replicas = (0..3).map(|node| Box::from([node])).collect();
        let ring = Ring { ends: vec![-10, 0, 10], replicas };
        let found: Vec<u16> =
            [i64::MIN, -10, -9, 0, 1, 10, 11].map(|token| ring.replicas(token)[0]).into();
        assert_eq!(found, [0, 0, 1, 1, 2, 2, 0]);
        assert!(Ring::default().replicas(5).is_empty());
    }
}
