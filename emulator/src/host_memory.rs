//! Whether the host has the memory that a guest is to have.

use std::path::Path;

use crate::failure::BadInput;

/// Refuses more than the host has, and warns of more than it has left; `field`: who asks for it. The guest's memory
/// is taken as the guest writes to it: a run that needs more than there is would be killed in its midst.
pub fn check(field: &str, memory: u64) -> Result<(), BadInput> {
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

struct Host {
    total: u64,
    available: u64,
}

impl Host {
    /// As `/proc/meminfo` has it.
    fn of(meminfo: &str) -> Option<Self> {
        let field = |name: &str| {
            let line = meminfo.lines().find_map(|line| line.strip_prefix(name))?;
            let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
            kib.checked_mul(1024)
        };
        let total = field("MemTotal:")?;
        Some(Self {
            total,
            available: field("MemAvailable:").unwrap_or(total),
        })
    }
}

/// The least limit of the control groups (version 2) that this process is in, as a container has.
fn limit(groups: &str, read: impl Fn(&str) -> Option<String>) -> Option<u64> {
    let own = groups.lines().find_map(|line| line.strip_prefix("0::/"))?;
    let limits = Path::new(own).ancestors().filter_map(|group| {
        let path = Path::new("/sys/fs/cgroup").join(group).join("memory.max");
        read(path.to_str()?)?.trim().parse().ok()
    });
    limits.min()
}

/// In the unit that a user would write.
fn size(bytes: u64) -> String {
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
            "/sys/fs/cgroup/a/b/memory.max" => Some("max\n".into()),
            _ => None,
        };
        assert_eq!(limit("1:cpu:/x\n0::/a/b\n", read), Some(4096));
        assert_eq!(limit("0::/\n", read), None);
        assert_eq!(limit("", read), None);
    }

    #[test]
    fn what_no_host_has_is_refused_with_numbers() {
        let error = check("guest.memory", 64 << 40).unwrap_err().to_string();
        assert!(
            error.starts_with("guest.memory: expected at most the host's"),
            "{error}"
        );
        assert!(error.ends_with("found 65536.0 GiB"), "{error}");
        check("guest.memory", 1 << 20).unwrap();
    }
}
