//! Instructions of any encoding: decoding and disassembly.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|words: Vec<u32>| {
    for raw in words {
        let inst = isa::decode(raw);
        assert!(inst.len == 2 || inst.len == 4);
        assert_eq!(inst, isa::decode(inst.raw), "{raw:#x}");
        assert!(!isa::disasm(&inst, 0x8000_0000).is_empty());
    }
});
