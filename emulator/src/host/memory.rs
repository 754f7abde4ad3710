//! Whether the host has the memory that a guest is to have, and how much a run may take of it.

use std::path::{Path, PathBuf};

use crate::failure::BadInput;

/// Refuses more than the host has, and warns of more than it has left; `field`: who asks for it. The guest's memory
/// is taken as the guest writes to it: a run that needs more than there is would be killed in its midst.
pub(crate) fn check(field: &str, memory: u64) -> Result<(), BadInput> {
    let read = |path: &str| std::fs::read_to_string(path).ok();
    let Some(host) = read("/proc/meminfo").and_then(|text| Host::of(&text)) else {
        return Ok(());
    };
    let groups = read("/proc/self/cgroup").unwrap_or_default();
    let most = host.total.min(limit(&groups, read).unwrap_or(u64::MAX));
    if memory > most {
        return Err(BadInput(format!(
            "{field}: expected at most the host's {}, found {}",
            size(most),
            size(memory)
        )));
    }
    if memory > host.available {
        eprintln!(
            "tipsim: warning: {field}: {} is more than the host has left, {}: if the guest uses it all, this process is killed",
            size(memory),
            size(host.available)
        );
    }
    Ok(())
}

/// Memory that a run leaves to the host if nobody says otherwise: an eighth of what is left, and at least so many bytes. The run's end takes some of
/// it: what was recorded becomes a report.
const MIN_LEFT_TO_HOST: u64 = 512 << 20;

/// Bytes that this process may have in use: what was `asked` for, or else what it has now and what the host, and each of the
/// control groups that it is in, has left, less a margin. No bound where that is unknown.
pub(crate) fn bound(asked: Option<u64>) -> u64 {
    let read = |path: &str| std::fs::read_to_string(path).ok();
    let left = || {
        let host = Host::of(&read("/proc/meminfo")?)?;
        let groups = read("/proc/self/cgroup").unwrap_or_default();
        Some(host.available.min(left_in_groups(&groups, read).unwrap_or(u64::MAX)))
    };
    let most =
        |left: u64| in_use().unwrap_or(0) + (left - (left / 8).max(MIN_LEFT_TO_HOST).min(left));
    asked.or_else(|| left().map(most)).unwrap_or(u64::MAX)
}

/// Bytes of memory that this process has in use, as Linux counts its resident set.
pub(crate) fn in_use() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    status.lines().find_map(|line| kib(line, "VmRSS:"))
}

/// Bytes in a line such as `VmRSS:  1024 kB` with this name.
fn kib(line: &str, name: &str) -> Option<u64> {
    let kib: u64 = line.strip_prefix(name)?.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

struct Host {
    total: u64,
    available: u64,
}

impl Host {
    /// Returns the host's memory by the content of `/proc/meminfo`.
    fn of(meminfo: &str) -> Option<Self> {
        let field = |name: &str| meminfo.lines().find_map(|line| kib(line, name));
        let total = field("MemTotal:")?;
        Some(Self { total, available: field("MemAvailable:").unwrap_or(total) })
    }
}

/// The least limit of the control groups (version 2) that this process is in, as a container has.
fn limit(groups: &str, read: impl Fn(&str) -> Option<String>) -> Option<u64> {
    let limit = |group: &PathBuf| number(group, "memory.max", &read);
    folders(groups).iter().filter_map(limit).min()
}

/// The least that any of these groups has left. What the host may drop from its cache counts as in use.
fn left_in_groups(groups: &str, read: impl Fn(&str) -> Option<String>) -> Option<u64> {
    let left = |group: &PathBuf| {
        let most = number(group, "memory.max", &read)?;
        let used = number(group, "memory.current", &read).unwrap_or(0);
        Some(most.saturating_sub(used))
    };
    folders(groups).iter().filter_map(left).min()
}

/// The folders of the control groups, of which `/proc/self/cgroup` names the innermost.
fn folders(groups: &str) -> Vec<PathBuf> {
    let own = groups.lines().find_map(|line| line.strip_prefix("0::/"));
    let all = own.into_iter().flat_map(|own| Path::new(own).ancestors());
    all.map(|group| Path::new("/sys/fs/cgroup").join(group)).collect()
}

/// The number that a file of a group has; `None` for "max", which is no limit.
fn number(group: &Path, file: &str, read: impl Fn(&str) -> Option<String>) -> Option<u64> {
    read(group.join(file).to_str()?)?.trim().parse().ok()
}

/// Returns a size in the unit that a user would write.
pub(crate) fn size(bytes: u64) -> String {
    match bytes {
        0..0x8000_0000 => format!("{} MiB", bytes >> 20),
        _ => format!("{:.1} GiB", bytes as f64 / (1u64 << 30) as f64),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_is_read_with_the_limits_of_its_groups() {
        let host =
            Host::of("MemTotal:       2048 kB\nMemFree: 1 kB\nMemAvailable:   1024 kB\n").unwrap();
        assert_eq!((host.total, host.available), (2 << 20, 1 << 20));
        assert!(Host::of("MemTotal: lots\n").is_none());
        let read = |path: &str| match path {
            "/sys/fs/cgroup/a/memory.max" => Some("4096\n".into()),
            "/sys/fs/cgroup/a/memory.current" => Some("1000\n".into()),
            "/sys/fs/cgroup/a/b/memory.max" => Some("max\n".into()),
            "/sys/fs/cgroup/a/b/memory.current" => Some("900\n".into()),
            _ => None,
        };
        assert_eq!(left_in_groups("0::/a/b\n", read), Some(3096));
        assert_eq!(left_in_groups("0::/\n", read), None);
        assert_eq!(limit("1:cpu:/x\n0::/a/b\n", read), Some(4096));
        assert_eq!(limit("0::/\n", read), None);
        assert_eq!(limit("", read), None);
    }

    #[test]
    fn a_run_may_take_what_is_asked_for_or_left() {
        assert_eq!(bound(Some(7)), 7);
        let used = in_use().unwrap();
        let bound = bound(None);
        let host = Host::of(&std::fs::read_to_string("/proc/meminfo").unwrap()).unwrap();
        assert!(used > 1 << 20 && bound < used + host.total, "{bound}");
    }

    #[test]
    fn what_no_host_has_is_refused_with_numbers() {
        let error = check("guest.memory", 64 << 40).unwrap_err().to_string();
        assert!(error.starts_with("guest.memory: expected at most the host's"), "{error}");
        assert!(error.ends_with("found 65536.0 GiB"), "{error}");
        check("guest.memory", 1 << 20).unwrap();
    }
}
