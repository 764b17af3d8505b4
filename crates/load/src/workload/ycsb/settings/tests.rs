use super::*;

fn settings(given: &[&str]) -> Result<Settings, LoadError> {
    let given: Vec<String> = given.iter().map(|&one| one.to_owned()).collect();
    Settings::new(Properties::read(&[], &given).expect("properties"), Phase::Run, Store::Redis)
}

fn refusal(given: &[&str]) -> String {
    settings(given).expect_err("refused").to_string()
}

#[test]
fn defaults_are_those_of_ycsb() {
    let found = settings(&["recordcount=1000"]).expect("enough");
    assert_eq!(found.table, "usertable");
    assert_eq!((found.fields.names.len(), found.fields.names[9].as_str()), (10, "field9"));
    assert_eq!(found.fields.lengths, Lengths::Constant(100));
    let shares = [found.shares.read, found.shares.update, found.shares.scan];
    let far = shares
        .iter()
        .zip([0.95, 0.05, 0.0])
        .any(|(share, expected)| (share - expected).abs() > 1e-12);
    assert!(!far, "{shares:?}");
    assert_eq!(found.keys, KeyNames { hashed: true, padding: 1 });
    let uniform = Chooser::Plain { from: 0, numbers: Numbers::Uniform { items: 1_000 } };
    assert_eq!(found.chooser, uniform);
    let scans = ScanLengths { least: 1, numbers: Numbers::Uniform { items: 1_000 } };
    assert_eq!(found.scan_lengths, scans);
    assert_eq!(found.client, Client::default());
    assert!(found.read_all_fields && !found.write_all_fields && !found.checks_contents());
}

#[test]
fn the_client_is_told_what_ycsbs_client_would_do() {
    let given =
        ["recordcount=10", "operationcount=5", "threadcount=3", "target=7", "maxexecutiontime=9"];
    let client = settings(&given).expect("fine").client;
    assert_eq!((client.operations, client.connections), (Some(5), Some(3)));
    assert_eq!((client.per_s, client.time), (Some(7.0), Some(Duration::from_secs(9))));
}

#[test]
fn a_load_inserts_its_part_of_the_records() {
    let given = ["recordcount=10", "operationcount=5", "insertstart=2", "insertcount=3"];
    let given: Vec<String> = given.iter().map(|&one| one.to_owned()).collect();
    let properties = Properties::read(&[], &given).expect("properties");
    let found = Settings::new(properties, Phase::Load, Store::Redis).expect("fine");
    assert_eq!((found.client.operations, found.insert_start), (Some(3), 2));
}

#[test]
fn shares_are_made_to_add_up() {
    let shares = settings(&["recordcount=1", "readproportion=3", "updateproportion=1"]);
    let read = shares.expect("fine").shares.read;
    assert!((read - 0.75).abs() < 1e-12, "{read}");
    let none = refusal(&["recordcount=1", "readproportion=0", "updateproportion=0"]);
    assert!(none.contains("nothing would be done"), "{none}");
}

#[test]
fn zipfian_covers_the_records_to_come() {
    let given = ["recordcount=100", "operationcount=1000", "insertproportion=0.05"];
    let with = |distribution: &str| {
        let given = [&given[..], &[distribution]].concat();
        settings(&given).expect("fine").chooser
    };
    assert_eq!(with("requestdistribution=zipfian"), Chooser::zipfian(0, 200));
    let Chooser::YcsbCompat { items, .. } = with("requestdistribution=ycsb-compat") else {
        panic!("another distribution");
    };
    assert_eq!(items, 201);
}

#[test]
fn what_cannot_be_is_refused_with_its_name() {
    let with = |given: &str| refusal(&["recordcount=10", given]);
    assert_eq!(
        with("fieldcont=5"),
        "-p fieldcont=5: tare-load has no such property; docs/reference/workloads/tare-load-ycsb.md lists them"
    );
    assert!(with("readallfields=yes").contains("must be true or false"));
    assert!(with("insertorder=hash").contains("hashed, ordered"));
    assert!(with("insertcount=11").contains("from 1 to 10"));
    assert!(with("workload=site.ycsb.workloads.TimeSeriesWorkload").contains("CoreWorkload"));
    assert!(with("measurementtype=raw").contains("--logs"));
    assert!(with("db=site.ycsb.BasicDB").contains("--protocol"));
    assert!(with("dotransactions=false").contains("tare-load load"));
    assert!(with("core_workload_insertion_retry_limit=3").contains("not tried again"));
    assert!(with("table=user table").contains("letters"));
    assert!(refusal(&[]).contains("recordcount is missing"));
    assert!(refusal(&["recordcount=2147483648"]).contains("2147483647"));
    let integrity = ["recordcount=1", "dataintegrity=true", "fieldlengthdistribution=uniform"];
    assert!(refusal(&integrity).contains("constant length"));
}

#[test]
fn a_refusal_names_file_and_line() {
    let folder = tempfile::tempdir().expect("a directory");
    let path = folder.path().join("workload");
    std::fs::write(&path, "recordcount=10\n\nreadallfields=no\n").expect("written");
    let properties = Properties::read(std::slice::from_ref(&path), &[]).expect("read");
    let error =
        Settings::new(properties, Phase::Run, Store::Redis).expect_err("refused").to_string();
    let expected = "line 3: readallfields: must be true or false";
    assert_eq!(error, format!("{}, {expected}", path.display()));
}

#[test]
fn the_template_that_comes_with_ycsb_is_taken_as_it_is() {
    settings(&[
        "workload=site.ycsb.workloads.CoreWorkload",
        "recordcount=1000000",
        "operationcount=3000000",
        "insertstart=0",
        "fieldlengthdistribution=constant",
        "maxscanlength=1000",
        "scanlengthdistribution=uniform",
        "insertorder=hashed",
        "requestdistribution=zipfian",
        "hotspotdatafraction=0.2",
        "hotspotopnfraction=0.8",
        "table=usertable",
        "measurementtype=histogram",
        "histogram.buckets=1000",
        "timeseries.granularity=1000",
    ])
    .expect("all of it");
}
