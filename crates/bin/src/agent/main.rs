//! `tare-agent`: see `crates/agent`.

fn main() {
    std::process::exit(tare_agent::run(std::env::args_os().skip(1).collect()));
}
