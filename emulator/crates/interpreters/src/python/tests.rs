use crate::testing::{FakeInterpreter, IMAGE, RUNTIME, THREAD};
use crate::{Frame, MAX_DEPTH, Python, find_runtime, is_python};

/// `<module>` calls `work` by the interpreter, which calls a method of a name that is not ASCII.
fn three_frames() -> FakeInterpreter {
    let mut fake = FakeInterpreter::new();
    let (module, work, method) =
        (fake.code("<module>", 1, 1), fake.code("work", 1, 10), fake.code("Größe.über_π", 2, 20));
    fake.call_from_c();
    fake.call(module, 9);
    fake.call(work, 3);
    fake.call_from_c();
    fake.call(method, 8);
    fake
}

fn frames(python: &mut Python, fake: &FakeInterpreter, thread: u32) -> Vec<Frame> {
    let mut frames = Vec::new();
    python.frames(fake, (1, RUNTIME), thread, &mut frames);
    frames
}

/// Names and lines, innermost first.
fn named(python: &mut Python, fake: &FakeInterpreter) -> Vec<(String, u32)> {
    let frames = frames(python, fake, THREAD);
    let named = frames.iter().map(|frame| {
        let function = &python.functions()[frame.function as usize];
        assert_eq!(function.file, "/home/me/prog.py");
        (function.name.clone(), frame.line)
    });
    named.collect()
}

#[test]
fn frames_of_the_thread_that_runs() {
    let fake = three_frames();
    assert_eq!(find_runtime(&fake, IMAGE), Some(RUNTIME));
    let mut python = Python::default();
    let expected = [("Größe.über_π", 21), ("work", 10), ("<module>", 2)];
    let expected = expected.map(|(name, line)| (name.to_owned(), line));
    assert_eq!(named(&mut python, &fake), expected);
    assert_eq!(named(&mut python, &fake), expected, "remembered");
    let lines: Vec<u32> = python.functions().iter().map(|f| f.line).collect();
    assert_eq!(lines, [20, 10, 1]);
    // Other threads: one that runs no code of Python, one that is none of Python's.
    assert_eq!(frames(&mut python, &fake, 41), []);
    assert_eq!(frames(&mut python, &fake, 43), []);
}

#[test]
fn code_in_the_place_of_other_code_is_read_anew() {
    let mut fake = three_frames();
    let mut python = Python::default();
    named(&mut python, &fake);
    let (code, name) = (fake.code("a", 1, 5), fake.string("other", 4));
    fake.call(code, 0);
    assert_eq!(named(&mut python, &fake)[0], ("a".into(), 5));
    fake.word(code + 128, name);
    assert_eq!(named(&mut python, &fake)[0], ("other".into(), 5));
}

#[test]
fn files_that_have_an_interpreter() {
    for (path, expected) in [
        ("/usr/bin/python3.13", true),
        ("/usr/lib/riscv64-linux-gnu/libpython3.13.so.1.0", true),
        ("python3", true),
        ("/usr/bin/perl", false),
        ("/usr/lib/python3/dist-packages/x.so", false),
    ] {
        assert_eq!(is_python(path), expected, "{path}");
    }
}

#[test]
fn other_versions_are_not_read() {
    for (field, value) in [(1, 0x030c_05f0), (1, 0x030e_00f0), (2, 1), (5, u64::MAX), (30, 1 << 32)]
    {
        let mut fake = three_frames();
        fake.word(RUNTIME + 8 * field, value);
        assert_eq!(find_runtime(&fake, IMAGE), None, "{field} {value:#x}");
        assert_eq!(frames(&mut Python::default(), &fake, THREAD), []);
    }
}

#[test]
fn chains_that_go_in_a_circle_end() {
    let mut fake = three_frames();
    let code = fake.code("f", 1, 1);
    let frame = fake.call(code, 0);
    fake.word(frame + 8, frame);
    let found = frames(&mut Python::default(), &fake, THREAD);
    assert_eq!(found.len(), MAX_DEPTH);
    // Frames of the interpreter's own, too.
    fake.put(frame + 70, &[3]);
    assert_eq!(frames(&mut Python::default(), &fake, THREAD), []);
    // Threads, and interpreters without threads.
    let state = fake.state;
    fake.word(state + 8, state);
    fake.reads.set(0);
    assert_eq!(frames(&mut Python::default(), &fake, 43), []);
    assert!(fake.reads.get() < 10_000, "{}", fake.reads.get());
}

#[test]
fn very_deep_recursion_has_its_innermost_frames() {
    let mut fake = FakeInterpreter::new();
    let (outer, inner) = (fake.code("outer", 1, 1), fake.code("inner", 1, 9));
    fake.call(outer, 0);
    for _ in 0..2 * MAX_DEPTH {
        fake.call(inner, 0);
    }
    let mut python = Python::default();
    assert_eq!(frames(&mut python, &fake, THREAD).len(), MAX_DEPTH);
    assert_eq!(python.functions().len(), 1);
}

/// Any word of the objects is something else, any page is away: what is found then may be wrong, and no more than that.
#[test]
fn any_memory_is_survived() {
    let values =
        [0, 1, u64::MAX, u64::MAX - 7, 1 << 63, RUNTIME, 0x7f00_0008, 0x0101_0101_0101_0101];
    let pages = three_frames().mapped();
    let mut found = 0;
    for page in &pages {
        for word in 0..512 {
            let mut fake = three_frames();
            fake.word(page + 8 * word, values[word as usize % values.len()]);
            fake.reads.set(0);
            let mut python = Python::default();
            found += frames(&mut python, &fake, THREAD).len();
            assert!(fake.reads.get() < 50_000);
            let names = python.functions().iter().map(|f| f.name.chars().count());
            assert!(names.max().unwrap_or(0) <= 257);
        }
        let mut fake = three_frames();
        fake.unmap(*page);
        frames(&mut Python::default(), &fake, THREAD);
        find_runtime(&fake, IMAGE);
    }
    assert!(found > 3 * 512, "{found}");
}

#[test]
fn an_image_may_lie_anywhere() {
    let fake = three_frames();
    for (start, len) in [(u64::MAX - 4095, u64::MAX), (0, 0), (u64::MAX, 1), (1 << 63, 1 << 62)] {
        find_runtime(&fake, crate::Image { start, len });
    }
}
