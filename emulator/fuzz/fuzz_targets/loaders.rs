//! Files that the user gives to boot: ELF or raw firmware, kernel Image, RAM disk; and the tree of what there is.
#![no_main]

use devices::{Clock, RAM_BASE};
use libfuzzer_sys::fuzz_target;
use machine::{Board, Boot, BootImages, Elf, Image, Isa};

fuzz_target!(|input: (Vec<u8>, Option<Vec<u8>>, Option<Vec<u8>>, String)| {
    let (firmware, kernel, initrd, bootargs) = &input;
    let image = |bytes| Image { name: "file", bytes };
    let mut board = Board::new(4 << 20, 2, Clock::default(), 0).unwrap();
    let isa = Isa::rv64gc(isa::Extensions::ALL);
    let mut tree = board.device_tree(isa, bootargs, None);
    let images = BootImages {
        firmware: image(firmware),
        kernel: kernel.as_deref().map(image),
        initrd: initrd.as_deref().map(image),
    };
    let _ = Boot::load(images, &mut board.bus.ram, |initrd| {
        tree.initrd = initrd;
        tree.build()
    });
    let _ = Elf::load(image(firmware), RAM_BASE, &mut board.bus.ram);
});
