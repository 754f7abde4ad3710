//! `tipsim boot` of small systems of others: what it takes, and what it refuses.

use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

use crate::common::{assemble, assert_error, scratch, stderr, stdout, tipsim};

/// Prints a letter on the serial port, and switches the machine off by the test device.
fn prints(letter: char) -> String {
    format!(
        ".globl _start\n_start: li t0, 0x10000000\n li t1, '{letter}'\n sb t1, 0(t0)\n\
         li t0, 0x100000\n li t1, 0x5555\n sw t1, 0(t0)\n1: j 1b\n"
    )
}

fn boot<A: AsRef<std::ffi::OsStr>>(args: &[A]) -> Output {
    let mut boot = tipsim();
    boot.arg("boot").args(args).env_remove("TIPSIM_GUEST");
    boot.stdin(Stdio::null()).output().unwrap()
}

#[test]
fn a_firmware_without_a_kernel_boots_alone() {
    let dir = scratch("boot-alone");
    let elf = assemble(&dir, "alone", &prints('F'));
    let elf = elf.to_str().unwrap();
    // The guest directory has another kernel and RAM disk: none of them.
    for args in [
        &["--guest-dir", "/nowhere", "--firmware", elf][..],
        &["--firmware", "none", "--kernel", elf],
    ] {
        let out = boot(args);
        assert_eq!((stdout(&out).as_str(), out.status.code()), ("F", Some(0)), "{}", stderr(&out));
    }
    assert_error(&boot(&["--firmware", "none"]), 2, &["--kernel FILE"]);
}

/// Firmware that starts what lies at the kernel's place.
fn starter(dir: &Path) -> PathBuf {
    assemble(dir, "starter", ".globl _start\n_start: li t0, 0x80200000\n jr t0\n")
}

/// A kernel as Linux' vmlinux is linked: for virtual addresses, and loaded relative to its start.
fn vmlinux(dir: &Path) -> PathBuf {
    let (source, script, elf) = (dir.join("v.S"), dir.join("v.ld"), dir.join("vmlinux"));
    std::fs::write(&source, prints('V')).unwrap();
    let text = "ENTRY(_start)\nSECTIONS { . = 0xffffffff80000000; .text : AT(0) { *(.text*) } }\n";
    std::fs::write(&script, text).unwrap();
    crate::common::succeed(
        Command::new("riscv64-linux-gnu-gcc")
            .args(["-nostdlib", "-static", "-no-pie", "-Wl,--build-id=none", "-T"])
            .args([&script, Path::new("-o"), &elf, &source]),
    );
    elf
}

#[test]
fn kernels_are_unpacked_and_vmlinux_is_loaded() {
    let dir = scratch("boot-kernels");
    let firmware = starter(&dir);
    let kernel = dir.join("Image");
    let elf = assemble(&dir, "kernel", &prints('K'));
    crate::common::succeed(
        Command::new("riscv64-linux-gnu-objcopy").args(["-O", "binary"]).args([&elf, &kernel]),
    );
    crate::common::succeed(Command::new("gzip").arg("-k").arg(&kernel));
    for (kernel, letter) in
        [(kernel.clone(), "K"), (kernel.with_extension("gz"), "K"), (vmlinux(&dir), "V")]
    {
        let args =
            ["--firmware".as_ref(), firmware.as_os_str(), "--kernel".as_ref(), kernel.as_os_str()];
        let out = boot(&args);
        assert_eq!(stdout(&out), letter, "{}: {}", kernel.display(), stderr(&out));
    }
    let packed = dir.join("Image.xz");
    std::fs::write(&packed, b"\xfd7zXZ\0....").unwrap();
    let args =
        ["--firmware".as_ref(), firmware.as_os_str(), "--kernel".as_ref(), packed.as_os_str()];
    assert_error(&boot(&args), 2, &["Image.xz", "kernel", "found xz data"]);
}

#[test]
fn images_that_are_not_raw_are_refused() {
    let dir = scratch("boot-images");
    let elf = assemble(&dir, "images", &prints('I'));
    let elf = elf.to_str().unwrap();
    let mut vdi = vec![0; 512];
    vdi[64..68].copy_from_slice(&[0x7f, 0x10, 0xda, 0xbe]);
    for (name, bytes) in [
        ("qcow2", b"QFI\xfb\0\0\0\x03".to_vec()),
        ("VMDK", b"KDMV\x01\0\0\0".to_vec()),
        ("VHDX", b"vhdxfile".to_vec()),
        ("VDI", vdi),
    ] {
        let path = dir.join(name);
        std::fs::write(&path, bytes).unwrap();
        let image = path.to_str().unwrap();
        let says = ["found ", name, "qemu-img convert -O raw", image];
        assert_error(&boot(&["--firmware", elf, "--drive", image]), 2, &says);
        let spec = dir.join("spec.toml");
        let text =
            format!("[guest]\nfirmware = \"{elf}\"\nkernel = \"{elf}\"\ndrive = [\"{image}\"]\n");
        std::fs::write(&spec, text).unwrap();
        let mut run = tipsim();
        run.arg("run").arg(&spec).arg("--out").arg(dir.join("out"));
        assert_error(&run.output().unwrap(), 2, &says);
    }
}

/// Boots a system whose kernel expects what the machine lacks: it shows nothing, and the user is told.
#[test]
fn a_guest_whose_traps_lead_nowhere_is_told_once() {
    let dir = scratch("boot-stuck");
    let source = ".globl _start\n_start: li t0, 0x800\n csrw mstatus, t0\n li t0, -1\n csrw medeleg, t0\n\
                  la t0, 2f\n csrw mepc, t0\n li t0, 0x1f\n csrw pmpcfg0, t0\n csrw pmpaddr0, t1\n mret\n2: ebreak\n";
    let elf = assemble(&dir, "stuck", source);
    for mode in ["functional", "timing"] {
        let args = ["--mode", mode, "--max-insts", "3000000", "--firmware", elf.to_str().unwrap()];
        let out = boot(&args);
        let text = stderr(&out);
        assert_eq!(text.matches("gets nowhere: hart 0: ").count(), 1, "{text}");
        assert!(text.contains("in supervisor mode"), "{text}");
        assert!(text.contains("stvec is 0"), "{text}");
    }
}

/// Boots with page tables as small kernels leave them: A and D are clear, and nothing handles the fault.
#[test]
fn clear_bits_of_a_page_table_are_named_or_set_by_hardware() {
    let dir = scratch("boot-bits");
    let off = "li t0, 0x100000\n li t1, 0x5555\n sw t1, 0(t0)\n1: j 1b\n";
    // One page of 1 GiB each at 0 and at 0x80000000: valid, readable, writable, executable.
    let source = format!(
        ".globl _start\n_start: la t0, table\n li t1, 0xf\n sd t1, 0(t0)\n li t1, 0x2000000f\n sd t1, 16(t0)\n\
         srli t0, t0, 12\n li t1, 8\n slli t1, t1, 60\n or t0, t0, t1\n csrw satp, t0\n\
         li t0, 0x1f\n csrw pmpcfg0, t0\n li t0, -1\n csrw pmpaddr0, t0\n\
         li t0, 0x800\n csrw mstatus, t0\n la t0, 2f\n csrw mepc, t0\n mret\n2: {off}\
         .balign 4096\ntable: .skip 4096\n"
    );
    let elf = assemble(&dir, "bits", &source);
    let elf = elf.to_str().unwrap();
    for mode in ["functional", "timing"] {
        let args = ["--mode", mode, "--max-insts", "3000000", "--firmware", elf];
        let text = stderr(&boot(&args));
        for says in [
            "gets nowhere: hart 0: instruction page fault",
            "A of its entry is clear",
            "isa.svadu = true",
        ] {
            assert!(text.contains(says), "{mode}: {text}");
        }
        let out = boot(&[&args[..], &["--set", "isa.svadu=true"]].concat());
        assert_eq!(out.status.code(), Some(0), "{mode}");
        assert!(!stderr(&out).contains("nowhere"), "{}", stderr(&out));
    }
    let wrong = boot(&["--firmware", elf, "--set", "isa.svadoo=true"]);
    assert_error(&wrong, 2, &["isa.svadoo"]);
}

/// Prints the version that the first virtio device says, after it wrote the legacy page size.
#[test]
fn virtio_devices_have_the_legacy_interface_on_request() {
    let dir = scratch("boot-legacy");
    let source = ".globl _start\n_start: li t0, 0x10001000\n li t1, 4096\n sw t1, 0x28(t0)\n lw t1, 4(t0)\n\
                  addi t1, t1, 48\n li t0, 0x10000000\n sb t1, 0(t0)\n\
                  li t0, 0x100000\n li t1, 0x5555\n sw t1, 0(t0)\n1: j 1b\n";
    let elf = assemble(&dir, "legacy", source);
    let args = ["--firmware", elf.to_str().unwrap(), "--virtio-legacy"];
    let (modern, legacy) = (boot(&args[..2]), boot(&args));
    assert_eq!((stdout(&modern), stdout(&legacy)), ("2".into(), "1".into()));
    let told = "GuestPageSize of the legacy interface";
    assert!(stderr(&modern).contains(told), "{}", stderr(&modern));
    // Colours are for terminals.
    assert!(!stderr(&modern).contains('\x1b'), "{}", stderr(&modern));
    assert!(!stderr(&legacy).contains(told), "{}", stderr(&legacy));
}
