//! Programs that are used to observe an instance on any host, with only the features in use.

use crate::digest::sha256_of;

/// `readlink PATH...`: prints the target of each link on a line; exit code 1 if one is not a link.
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
