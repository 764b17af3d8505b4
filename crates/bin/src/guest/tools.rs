//! The programs by which an instance is observed on any host, as far as an observation uses them.

use crate::digest::sha256_of;

/// `readlink PATH...`: what each link says, a line each; 1 where one is none.
pub(crate) fn readlink(paths: &[String]) -> i32 {
    let mut code = 0;
    for path in paths {
        match std::fs::read_link(path) {
            Ok(target) => println!("{}", target.display()),
            Err(_) => code = 1,
        }
    }
    code
}

/// `sha256sum PATH...`
pub(crate) fn sha256sum(paths: &[String]) -> i32 {
    let mut code = 0;
    for path in paths {
        match std::fs::File::open(path).and_then(sha256_of) {
            Ok(digest) => println!("{digest}  {path}"),
            Err(error) => {
                eprintln!("{path}: {error}");
                code = 1;
            }
        }
    }
    code
}
