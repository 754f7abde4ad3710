use super::*;
use crate::waits::{KernelEntry, SwitchOut, Transition};

fn words(values: &[u32]) -> Vec<u8> {
    values.iter().flat_map(|value| value.to_le_bytes()).collect()
}

fn task(pid: u32, tid: u32, comm: &str) -> Vec<u8> {
    let mut bytes = words(&[pid, tid]);
    let mut name = [0; 16];
    name[..comm.len()].copy_from_slice(comm.as_bytes());
    bytes.extend(name);
    bytes
}

fn mmap(pid: u32, start: u64, len: u64, path: &str) -> Vec<u8> {
    let mut bytes = words(&[pid, pid]);
    for value in [start, len, 0x1000] {
        bytes.extend(value.to_le_bytes());
    }
    bytes.extend(words(&[3]));
    bytes.extend([0xab; 20]);
    bytes.extend(path.as_bytes());
    bytes
}

fn name(context: &GuestContext) -> &str {
    &context.processes()[context.current().0 as usize].name
}

#[test]
fn boot_then_switch_fork_exec_exit() {
    let mut context = GuestContext::new();
    assert_eq!(name(&context), "boot");
    context.record(10, 1, &task(1, 1, "sh"));
    assert_eq!(name(&context), "sh");
    context.record(11, 3, &mmap(1, 0x1000, 0x100, "/bin/sh"));
    context.record(20, 5, &words(&[7, 7, 1, 1]));
    context.record(21, 1, &task(7, 7, "sh"));
    let forked = context.current();
    assert_eq!(context.processes()[forked.0 as usize].mappings.len(), 1);

    context.record(30, 2, &task(7, 7, "ls"));
    let ran = context.current();
    assert_ne!(ran, forked);
    assert_eq!(name(&context), "ls");
    let process = &context.processes()[ran.0 as usize];
    assert_eq!((process.pid, process.generation), (Some(7), 1));
    assert!(process.mappings.is_empty());
    assert_eq!(context.processes()[forked.0 as usize].end_cycle, Some(30));

    context.record(40, 4, &words(&[7, 7]));
    assert_eq!(context.processes()[ran.0 as usize].end_cycle, Some(40));
    context.record(41, 1, &task(7, 7, "ls"));
    assert_eq!(context.current(), ran, "the kernel switches to a task that is still ending");
    context.record(49, 5, &words(&[7, 7, 1, 1]));
    context.record(50, 1, &task(7, 7, "reused"));
    assert_ne!(context.current(), ran);
    assert_eq!(context.processes()[ran.0 as usize].end_cycle, Some(40));
}

#[test]
fn threads_share_their_process_and_do_not_rename_it() {
    let mut context = GuestContext::new();
    context.record(1, 1, &task(5, 5, "server"));
    let process = context.current();
    context.record(2, 5, &words(&[5, 6, 5, 5]));
    context.record(3, 1, &task(5, 6, "worker"));
    assert_eq!(context.current(), process);
    assert_eq!(name(&context), "server");
    context.record(4, 4, &words(&[5, 6]));
    assert_eq!(context.processes()[process.0 as usize].end_cycle, None);
}

#[test]
fn a_task_that_does_not_run_is_renamed_and_a_thread_s_name_is_not_its_process_s() {
    let mut context = GuestContext::new();
    context.record(1, 1, &task(5, 5, "server"));
    context.record(2, 7, &task(5, 6, "worker"));
    assert_eq!(name(&context), "server");
    context.record(3, 1, &task(9, 9, "sh"));
    context.record(4, 7, &task(5, 5, "renamed"));
    assert_eq!(name(&context), "sh");
    assert_eq!(context.processes()[1].name, "renamed");
    assert_eq!(context.malformed(), 0);
}

#[test]
fn mappings_are_found_by_time() {
    let mut context = GuestContext::new();
    context.record(1, 1, &task(5, 5, "a"));
    context.record(10, 3, &mmap(5, 0x1000, 0x1000, "/old"));
    context.record(20, 3, &mmap(5, 0x1800, 0x1000, "/new"));
    let process = &context.processes()[1];
    let path = |address, cycle| process.mapping_at(address, cycle).map(|m| m.path.as_str());
    assert_eq!(path(0x1900, 15), Some("/old"));
    assert_eq!(path(0x1900, 25), Some("/new"));
    assert_eq!(path(0x1000, 25), Some("/old"));
    assert_eq!(path(0x2100, 5), Some("/new"));
    assert_eq!(path(0x3000, 25), None);
    assert_eq!(process.mappings[0].build_id, [0xab; 3]);
}

#[test]
fn garbage_is_counted() {
    let mut context = GuestContext::new();
    context.record(1, 9, &[]);
    for kind in 0..=8 {
        for len in 0..80 {
            context.record(1, kind, &vec![0xff; len]);
        }
    }
    let mut long = mmap(5, 0, u64::MAX, "/x");
    long[32..36].copy_from_slice(&words(&[21]));
    context.record(1, 3, &long);
    assert!(context.malformed() > 100);
    context.record(1, 6, &[1; 16]);
    assert!(context.kernel_text().is_some());
}

#[test]
fn threads_keep_their_names_and_a_number_that_is_used_again_is_another_one() {
    let mut context = GuestContext::new();
    context.record(1, 1, &task(5, 5, "server"));
    context.record(2, 5, &words(&[5, 6, 5, 5]));
    let forked = context.take_forked().unwrap();
    assert_eq!((forked.parent, forked.tid, forked.is_thread), (5, 6, true));
    context.record(3, 1, &task(5, 6, "server"));
    let first = context.thread();
    context.ran(10);
    // By the record for it, and as drivers before that told it.
    context.record(4, 7, &task(5, 6, "worker"));
    context.record(5, 1, &task(5, 6, "miner"));
    assert_eq!(context.thread(), first);
    let thread = &context.threads()[first.0 as usize];
    assert_eq!((thread.tid, thread.name(), thread.cycles), (6, "miner", 10));
    assert_eq!(thread.names.len(), 3);
    context.record(6, 4, &words(&[5, 6]));
    context.record(7, 5, &words(&[5, 6, 5, 5]));
    context.record(8, 1, &task(5, 6, "worker"));
    assert_ne!(context.thread(), first);
    assert_eq!(context.threads()[first.0 as usize].end_cycle, Some(6));
    // Another program: its first thread is another one, too.
    context.record(9, 2, &task(5, 5, "server"));
    context.record(10, 1, &task(5, 5, "server"));
    let last = &context.threads()[context.thread().0 as usize];
    assert_eq!((last.process, last.first_cycle), (context.current(), 9));
}

#[test]
fn a_thread_that_renames_itself_for_ever_takes_little_memory() {
    let mut context = GuestContext::new();
    for n in 0..1000 {
        context.record(n, 1, &task(5, 5, &format!("name {n}")));
    }
    let thread = &context.threads()[context.thread().0 as usize];
    assert_eq!((thread.names.len(), thread.name()), (64, "name 999"));
}

/// A switch that says why the thread before left.
fn switch(to: &[u8], left: u32, why: [u8; 2], number: u16, rest: &[u8]) -> Vec<u8> {
    let mut bytes = to.to_vec();
    bytes.extend(left.to_le_bytes());
    bytes.extend(why);
    bytes.extend(number.to_le_bytes());
    bytes.extend(rest);
    bytes
}

#[test]
fn what_the_scheduler_does_is_kept_in_order() {
    let mut context = GuestContext::new();
    context.keep_scheduled();
    let (one, other) = (task(5, 5, "a"), task(5, 6, "a"));
    context.record(1, 1, &one);
    context.record(2, 5, &words(&[5, 6, 5, 5]));
    // Another hart's: its parent does not run here.
    context.record(2, 5, &words(&[8, 8, 7, 7]));
    let mut call = 0x5000_u64.to_le_bytes().to_vec();
    call.extend(0x104_u64.to_le_bytes());
    call.extend(128_u32.to_le_bytes());
    context.record(3, 1, &switch(&other, 5, [2, 1], 98, &call));
    context.record(4, 8, &words(&[5, 6]));
    context.record(5, 8, &words(&[5, 0]));
    context.record(6, 1, &switch(&one, 6, [2, 2], 13, &call));
    context.record(7, 1, &switch(&other, 5, [1, 0], 0, &[]));
    context.record(8, 1, &switch(&one, 6, [2, 0], 0, &[]));
    context.record(9, 1, &switch(&other, 5, [3, 0], 0, &[]));
    assert_eq!(context.malformed(), 0);
    let threads = [ThreadId(1), ThreadId(2)];
    let of_call = KernelEntry::Syscall { number: 98, address: 0x5000, argument: 128, pc: 0x104 };
    let of_fault = KernelEntry::Fault { address: 0x5000, pc: 0x104 };
    let expected = [
        (1, Transition::Runs(5, threads[0])),
        (2, Transition::Begins(6)),
        (3, Transition::Leaves(5, SwitchOut::Waits(of_call))),
        (3, Transition::Runs(6, threads[1])),
        (4, Transition::Wakes(5, Some(6))),
        (5, Transition::Wakes(5, None)),
        (6, Transition::Leaves(6, SwitchOut::Waits(of_fault))),
        (6, Transition::Runs(5, threads[0])),
        (7, Transition::Leaves(5, SwitchOut::Runnable)),
        (7, Transition::Runs(6, threads[1])),
        (8, Transition::Leaves(6, SwitchOut::Waits(KernelEntry::Kernel))),
        (8, Transition::Runs(5, threads[0])),
        (9, Transition::Leaves(5, SwitchOut::Ended)),
        (9, Transition::Runs(6, threads[1])),
    ];
    let kept: Vec<_> =
        context.take_scheduled().into_iter().map(|event| (event.cycle, event.change)).collect();
    assert_eq!(kept, expected);
    // Too short, and reasons that nobody knows.
    for bytes in [
        switch(&one, 6, [2, 1], 98, &call[..19]),
        switch(&one, 6, [0, 0], 0, &[]),
        switch(&one, 6, [2, 9], 0, &call),
        one[..].iter().chain(&[1]).copied().collect(),
    ] {
        context.record(10, 1, &bytes);
    }
    assert_eq!(context.malformed(), 4);
}

/// A shell with number 1 starts programs, each of which is born as a copy of it.
fn start(context: &mut GuestContext, cycle: u64, pid: u32, comm: &str) {
    context.record(cycle, 5, &words(&[pid, pid, 1, 1]));
    context.record(cycle + 1, 1, &task(pid, pid, "sh"));
    context.record(cycle + 2, 2, &task(pid, pid, comm));
    context.record(cycle + 3, 3, &mmap(pid, 0x10000, 0x1000, "/bin/true"));
}

fn stop(context: &mut GuestContext, cycle: u64, pid: u32) {
    context.record(cycle, 4, &words(&[pid, pid]));
    context.record(cycle + 1, 1, &task(1, 1, "sh"));
}

#[test]
fn very_many_processes_of_a_command_have_a_few_entities() {
    let mut context = GuestContext::new();
    context.record(1, 1, &task(1, 1, "sh"));
    context.record(2, 3, &mmap(1, 0x8000, 0x100, "/bin/sh"));
    let mut entities = Vec::new();
    for n in 0..100 {
        start(&mut context, 100 * n, 10 + n as u32, "true");
        assert_eq!(name(&context), "true");
        entities.push((context.current(), context.thread()));
        assert_eq!(context.tid(), 10 + n as u32);
        stop(&mut context, 100 * n + 50, 10 + n as u32);
        assert_eq!(context.current(), ProcessId(1));
    }
    let all = context.processes();
    let own = |name: &str| {
        let of = all.iter().filter(|p| p.name == name && p.stands_for.is_none());
        of.count()
    };
    // Beside the shell itself, which nobody saw being born.
    assert_eq!((own("true"), own("sh")), (4, 5));
    let together: Vec<_> = all
        .iter()
        .filter(|p| p.stands_for.is_some())
        .map(|p| (p.name.as_str(), p.pid, p.stands_for, p.end_cycle, p.mappings.len()))
        .collect();
    assert_eq!(together, [("sh", None, Some(96), None, 1), ("true", None, Some(96), None, 1)]);
    assert_eq!((all.len(), context.threads().len()), (12, 12));
    let (last, thread) = entities[99];
    assert!(entities[4..].iter().all(|one| *one == (last, thread)));
    assert!(entities[..4].iter().all(|one| *one != (last, thread)));
}

#[test]
fn a_process_leaves_those_that_it_was_counted_with_by_a_name_of_its_own() {
    let mut context = GuestContext::new();
    context.record(1, 1, &task(1, 1, "sh"));
    for n in 0..10 {
        start(&mut context, 100 * n, 10 + n as u32, "true");
    }
    let together = context.current();
    assert_eq!(context.processes()[together.0 as usize].stands_for, Some(6));
    // Another one of the processes, which does not run.
    context.record(2000, 7, &task(18, 18, "other"));
    assert_eq!(context.current(), together);
    context.record(2001, 1, &task(18, 18, "other"));
    let other = &context.processes()[context.current().0 as usize];
    assert_eq!((other.pid, other.name.as_str()), (Some(18), "other"));
    assert_eq!(context.processes()[together.0 as usize].stands_for, Some(5));
    // The program that one of the processes executes next gets its own entry, and the other processes stay where they are.
    context.record(2002, 2, &task(17, 17, "last"));
    assert_eq!(name(&context), "other");
    context.record(2003, 1, &task(17, 17, "last"));
    assert_eq!(name(&context), "last");
    context.record(2004, 1, &task(16, 16, "true"));
    assert_eq!(context.current(), together);
}

#[test]
fn commands_beyond_all_numbers_share_entities_too() {
    let mut context = GuestContext::new();
    context.record(1, 1, &task(1, 1, "sh"));
    for n in 0..1000u32 {
        start(&mut context, u64::from(n), 10 + n, &format!("c{}", n % 30));
    }
    assert!(context.processes().len() <= 40 + 31);
    assert!(context.threads().len() <= 40 + 31);
}
