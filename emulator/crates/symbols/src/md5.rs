//! MD5 (RFC 1321), by which DWARF 5 tells source files apart.

/// Left rotations of the four rounds.
const ROTATIONS: [[u32; 4]; 4] = [
    [7, 12, 17, 22],
    [5, 9, 14, 20],
    [4, 11, 16, 23],
    [6, 10, 15, 21],
];

/// The digest of some bytes.
pub(super) fn md5(bytes: &[u8]) -> [u8; 16] {
    let mut state: [u32; 4] = [0x6745_2301, 0xefcd_ab89, 0x98ba_dcfe, 0x1032_5476];
    let mut tail = bytes[bytes.len() / 64 * 64..].to_vec();
    tail.push(0x80);
    while tail.len() % 64 != 56 {
        tail.push(0);
    }
    tail.extend((bytes.len() as u64).wrapping_mul(8).to_le_bytes());
    let whole = bytes.chunks_exact(64);
    whole
        .chain(tail.chunks_exact(64))
        .for_each(|block| add(&mut state, block));
    let mut digest = [0; 16];
    for (bytes, word) in digest.chunks_exact_mut(4).zip(state) {
        bytes.copy_from_slice(&word.to_le_bytes());
    }
    digest
}

/// Adds a block of 64 bytes.
fn add(state: &mut [u32; 4], block: &[u8]) {
    let word = |at: usize| {
        let bytes = &block[4 * at..4 * at + 4];
        u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]])
    };
    let [mut a, mut b, mut c, mut d] = *state;
    for step in 0..64 {
        let (mixed, at) = match step / 16 {
            0 => (b & c | !b & d, step),
            1 => (d & b | !d & c, (5 * step + 1) % 16),
            2 => (b ^ c ^ d, (3 * step + 5) % 16),
            _ => (c ^ (b | !d), 7 * step % 16),
        };
        let sine = (((step + 1) as f64).sin().abs() * 4_294_967_296.0) as u32;
        let sum = a
            .wrapping_add(mixed)
            .wrapping_add(sine)
            .wrapping_add(word(at));
        let rotated = sum.rotate_left(ROTATIONS[step / 16][step % 4]);
        (a, d, c, b) = (d, c, b, b.wrapping_add(rotated));
    }
    for (sum, part) in state.iter_mut().zip([a, b, c, d]) {
        *sum = sum.wrapping_add(part);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn digests_of_the_standard() {
        let hex = |text: &str| -> String {
            md5(text.as_bytes())
                .iter()
                .map(|byte| format!("{byte:02x}"))
                .collect()
        };
        assert_eq!(hex(""), "d41d8cd98f00b204e9800998ecf8427e");
        assert_eq!(hex("message digest"), "f96b697d7cb7938d525a2f31aaf161d0");
        let digits = "1234567890".repeat(8);
        assert_eq!(hex(&digits), "57edf4a22be3c955ac49da2e2107b67a");
    }
}
