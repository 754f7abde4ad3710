//! The binary `tipsim`: see `--help`, and ARCHITECTURE.md for the map.

fn main() -> std::process::ExitCode {
    tipsim::main()
}
