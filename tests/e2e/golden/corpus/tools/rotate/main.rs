//! Deletes rotated logs that have outlived their policy; `--dry-run` only lists them.

mod policy;

use policy::Policy;
use std::path::Path;
use std::time::SystemTime;
use std::{env, fs, io, process};

fn sweep(directory: &Path, policy: &Policy, dry_run: bool) -> io::Result<u64> {
    let mut freed_bytes = 0;
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        let details = entry.metadata()?;
        if !details.is_file() || !name.ends_with(".gz") {
            continue;
        }
        let age = SystemTime::now().duration_since(details.modified()?).unwrap_or_default();
        if policy.is_expired(&name, age) {
            println!("{}", entry.path().display());
            if !dry_run {
                fs::remove_file(entry.path())?;
            }
            freed_bytes += details.len();
        }
    }
    Ok(freed_bytes)
}

fn main() {
    let arguments: Vec<String> = env::args().skip(1).collect();
    let dry_run = arguments.iter().any(|argument| argument == "--dry-run");
    let Some(directory) = arguments.iter().find(|argument| !argument.starts_with("--")) else {
        eprintln!("usage: rotate [--dry-run] DIRECTORY");
        process::exit(2);
    };
    match sweep(Path::new(directory), &Policy::default(), dry_run) {
        Ok(bytes) => eprintln!("{bytes} bytes {}", if dry_run { "would be freed" } else { "freed" }),
        Err(fault) => {
            eprintln!("{directory}: {fault}");
            process::exit(1);
        }
    }
}
