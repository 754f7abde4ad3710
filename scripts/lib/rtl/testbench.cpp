// SPDX-License-Identifier: MIT OR Apache-2.0
// A test bench for a tile of BOOM in Verilator: runs a bare-metal program in memory behind the tile's TileLink port, and writes a trace of
// the ROB, a record for each cycle (rtl_trace.py in scripts/lib/bench has the format).
//
// The memory system is a model: a second-level cache that answers after a fixed time and replaces lines at random, and memory that answers in
// order, one line after the other. It keeps no directory, as no other hart writes.

#include "Vtap.h"

#include <elf.h>

#include <algorithm>
#include <array>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <deque>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

namespace {

constexpr uint64_t RAM = 0x80000000, RAM_BYTES = uint64_t{256} << 20;
constexpr uint64_t ROM = 0x10000, ROM_BYTES = 4096;
constexpr uint64_t LINE = 64, BEAT = 8;
// Cycles without a commit after which the program hangs.
constexpr uint64_t HANGS = 20000;
// Cycles that are recorded after the program's end.
constexpr uint64_t AFTERWARDS = 64;

// Opcodes of TileLink 1.8, section 4 (table 4) and 8 (table 17).
enum OnA { PUT_FULL = 0, PUT_PARTIAL = 1, GET = 4, INTENT = 5, ACQUIRE_BLOCK = 6, ACQUIRE_PERM = 7 };
enum OnC { RELEASE = 6, RELEASE_DATA = 7 };
enum OnD { ACCESS_ACK = 0, ACCESS_ACK_DATA = 1, HINT_ACK = 2, GRANT = 4, GRANT_DATA = 5, RELEASE_ACK = 6 };

// What start.S of workloads/programs writes to mscratch.
enum Mark : uint64_t { BEGINS = uint64_t(-2), ENDS = uint64_t(-3), DONE = uint64_t(-1) };

[[noreturn]] __attribute__((format(printf, 1, 2))) void fail(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fputs("rtl: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(1);
}

class Memory {
  public:
    // Returns `bytes` bytes at an address; none if there is no memory.
    uint8_t *at(uint64_t address, uint64_t bytes) {
        if (address >= RAM && address - RAM < RAM_BYTES && bytes <= RAM_BYTES - (address - RAM)) return &ram[address - RAM];
        if (address >= ROM && address - ROM < ROM_BYTES && bytes <= ROM_BYTES - (address - ROM)) return &rom[address - ROM];
        return nullptr;
    }

    uint64_t read(uint64_t address) {
        uint64_t word = 0;
        if (const uint8_t *bytes = at(address, sizeof word)) memcpy(&word, bytes, sizeof word);
        return word;
    }

    void write(uint64_t address, uint64_t word, uint64_t mask) {
        uint8_t *bytes = at(address, sizeof word);
        for (unsigned n = 0; bytes && n < BEAT; n++)
            if (mask >> n & 1) bytes[n] = uint8_t(word >> 8 * n);
    }

    static bool is_ram(uint64_t address) { return address >= RAM && address - RAM < RAM_BYTES; }

    // Loads a program; returns the address of its symbol `tohost`, or 0.
    uint64_t load(const char *path) {
        std::ifstream file(path, std::ios::binary);
        const std::vector<char> data((std::istreambuf_iterator<char>(file)), {});
        const auto in_file = [&](uint64_t at, uint64_t bytes) { return at <= data.size() && bytes <= data.size() - at; };
        Elf64_Ehdr header{};
        if (!in_file(0, sizeof header)) fail("%s: expected an ELF file", path);
        memcpy(&header, data.data(), sizeof header);
        if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_machine != EM_RISCV)
            fail("%s: expected a 64-bit ELF file for RISC-V", path);
        for (unsigned n = 0; n < header.e_phnum; n++) {
            Elf64_Phdr segment{};
            const uint64_t place = header.e_phoff + n * uint64_t{header.e_phentsize};
            if (!in_file(place, sizeof segment)) fail("%s: a damaged ELF file", path);
            memcpy(&segment, data.data() + place, sizeof segment);
            if (segment.p_type != PT_LOAD) continue;
            uint8_t *bytes = at(segment.p_paddr, segment.p_memsz);
            if (!bytes || segment.p_filesz > segment.p_memsz || !in_file(segment.p_offset, segment.p_filesz))
                fail("%s: expected segments in the 256 MiB from 0x80000000, found one at %#lx", path, segment.p_paddr);
            memcpy(bytes, data.data() + segment.p_offset, segment.p_filesz);
        }
        boot(header.e_entry);
        return symbol(data, header, "tohost");
    }

  private:
    std::vector<uint8_t> ram = std::vector<uint8_t>(RAM_BYTES);
    std::array<uint8_t, ROM_BYTES> rom{};

    // Has the tile jump to the program. Generators of different years start it at the ROM's beginning, or 64 bytes later.
    void boot(uint64_t entry) {
        const uint32_t code[] = {
            0x00000297, // auipc t0, 0
            0x0102b283, // ld t0, 16(t0)
            0xf1402573, // csrr a0, mhartid
            0x00028067, // jr t0
        };
        for (const unsigned at : {0, 64}) {
            memcpy(&rom[at], code, sizeof code);
            memcpy(&rom[at + sizeof code], &entry, sizeof entry);
        }
    }

    static uint64_t symbol(const std::vector<char> &data, const Elf64_Ehdr &header, const std::string &name) {
        const auto section = [&](unsigned n) {
            Elf64_Shdr found{};
            const uint64_t place = header.e_shoff + n * uint64_t{header.e_shentsize};
            if (place <= data.size() && sizeof found <= data.size() - place) memcpy(&found, data.data() + place, sizeof found);
            return found;
        };
        for (unsigned n = 0; n < header.e_shnum; n++) {
            const Elf64_Shdr table = section(n);
            if (table.sh_type != SHT_SYMTAB || table.sh_offset + table.sh_size > data.size()) continue;
            const Elf64_Shdr names = section(table.sh_link);
            for (uint64_t at = 0; at + sizeof(Elf64_Sym) <= table.sh_size; at += sizeof(Elf64_Sym)) {
                Elf64_Sym found{};
                memcpy(&found, data.data() + table.sh_offset + at, sizeof found);
                const uint64_t text = names.sh_offset + found.st_name;
                if (text + name.size() < data.size() && !strcmp(data.data() + text, name.c_str())) return found.st_value;
            }
        }
        return 0;
    }
};

// Tags of a set-associative cache that replaces lines at random.
class Cache {
  public:
    Cache(uint64_t kib, uint64_t ways) : ways(ways), sets(kib * 1024 / LINE / ways), lines(sets * ways, NONE) {}

    // Notes an access; returns whether the line was there.
    bool access(uint64_t address) {
        const uint64_t line = address / LINE;
        const auto set = lines.begin() + ptrdiff_t(line % sets * ways), end = set + ptrdiff_t(ways);
        if (std::find(set, end, line) != end) return true;
        const auto vacant = std::find(set, end, NONE);
        // xorshift64 (Marsaglia, Xorshift RNGs, 2003).
        random ^= random << 13;
        random ^= random >> 7;
        random ^= random << 17;
        *(vacant != end ? vacant : set + ptrdiff_t(random % ways)) = line;
        return false;
    }

  private:
    static constexpr uint64_t NONE = UINT64_MAX;
    uint64_t ways, sets, random = 0x9e3779b97f4a7c15;
    std::vector<uint64_t> lines;
};

struct Options {
    uint64_t l2_latency = 0, l2_kib = 0, l2_ways = 0, memory_latency = 0, memory_cycles = 0, most_cycles = 0;
    const char *elf = nullptr, *trace = nullptr;
};

// An answer on TileLink's channel D.
struct Answer {
    uint64_t due, opcode, size, source, address, beats, sent;
};

class Bench {
  public:
    explicit Bench(const Options &options) : options(options), l2(options.l2_kib, options.l2_ways) {
        tohost = memory.load(options.elf);
        if (options.trace) {
            trace = fopen(options.trace, "wb");
            if (!trace) fail("%s: cannot be written", options.trace);
            const char header[] = {'B', 'O', 'O', 'M', 'T', 'R', '1', char(BANKS)};
            put(header, sizeof header);
        }
    }

    void run() {
        tap.reset = 1;
        for (int n = 0; n < 40; n++) edge();
        tap.reset = 0;
        uint64_t end = UINT64_MAX;
        for (; cycle < end; cycle++) {
            if (cycle == options.most_cycles) fail("%s: has not ended after %lu cycles", options.elf, cycle);
            tap.clock = 0;
            offer();
            tap.eval();
            requests();
            const bool accepted = tap.d_valid && tap.d_ready;
            record();
            tap.clock = 1;
            tap.eval();
            if (accepted) sent();
            if (end == UINT64_MAX && (mscratch == DONE || (tohost && memory.read(tohost)))) end = cycle + AFTERWARDS;
        }
        if (trace && fclose(trace)) fail("%s: cannot be written", options.trace);
        results();
    }

  private:
    Options options;
    Memory memory;
    Cache l2;
    Vtap tap;
    FILE *trace = nullptr;
    uint64_t tohost = 0, cycle = 0;
    std::deque<Answer> answers;
    // Whether an answer's beats are sent, and which one's.
    bool is_sending = false;
    size_t sending = 0;
    // Cycle in which memory has sent its last line.
    uint64_t memory_free = 0;
    // Beats of a write or a release that have come, and where it began.
    uint64_t put_beats = 0, put_begins = 0, release_beats = 0;
    // Addresses of the ROB's instructions, by index.
    std::array<uint32_t, 256> addresses{};
    uint64_t last_commit = 0, mscratch = 0;
    bool is_measured = false;
    std::map<std::string, uint64_t> counts;
    // By address: how often the instruction was dispatched, retired, and found mispredicted, from reset on.
    std::map<uint32_t, std::array<uint64_t, 3>> of_instruction;
    std::vector<uint64_t> values;

    void put(const void *data, size_t bytes) {
        if (fwrite(data, 1, bytes, trace) != bytes) fail("%s: cannot be written", options.trace);
    }

    void edge() {
        tap.clock = 0;
        tap.eval();
        tap.clock = 1;
        tap.eval();
    }

    static uint64_t beats_of(uint64_t size) { return size > 3 ? (uint64_t{1} << size) / BEAT : 1; }

    void answer(uint64_t due, OnD opcode, uint64_t size, uint64_t source, uint64_t address) {
        const bool has_data = opcode == ACCESS_ACK_DATA || opcode == GRANT_DATA;
        answers.push_back({due, opcode, size, source, address, has_data ? beats_of(size) : 1, 0});
    }

    // Takes requests always, and offers a beat of the first answer that is due.
    void offer() {
        tap.a_ready = tap.c_ready = tap.e_ready = 1;
        if (!is_sending) {
            const auto is_due = [&](const Answer &answer) { return answer.due <= cycle; };
            sending = size_t(std::find_if(answers.begin(), answers.end(), is_due) - answers.begin());
            is_sending = sending < answers.size();
        }
        tap.d_valid = is_sending;
        if (!is_sending) return;
        const Answer &answer = answers[sending];
        tap.d_bits_opcode = answer.opcode;
        tap.d_bits_size = answer.size;
        tap.d_bits_source = answer.source;
        tap.d_bits_data = memory.read((answer.address & ~(BEAT - 1)) + BEAT * answer.sent);
    }

    void sent() {
        if (++answers[sending].sent < answers[sending].beats) return;
        answers.erase(answers.begin() + ptrdiff_t(sending));
        is_sending = false;
    }

    // Returns when a line that is read arrives.
    uint64_t arrives(uint64_t address) {
        if (l2.access(address) || !Memory::is_ram(address)) return cycle + options.l2_latency;
        memory_free = std::max(cycle + options.memory_latency, memory_free + options.memory_cycles);
        return memory_free;
    }

    void requests() {
        if (tap.a_valid) {
            const uint64_t size = tap.a_bits_size, source = tap.a_bits_source, address = tap.a_bits_address;
            switch (tap.a_bits_opcode) {
            case PUT_FULL:
            case PUT_PARTIAL:
                if (put_beats == 0) put_begins = address & ~(BEAT - 1);
                memory.write(put_begins + BEAT * put_beats, tap.a_bits_data, tap.a_bits_mask);
                if (++put_beats == beats_of(size)) {
                    put_beats = 0;
                    answer(cycle + options.l2_latency, ACCESS_ACK, size, source, address);
                }
                break;
            case GET: answer(arrives(address), ACCESS_ACK_DATA, size, source, address); break;
            case INTENT: answer(cycle + options.l2_latency, HINT_ACK, size, source, address); break;
            case ACQUIRE_BLOCK: answer(arrives(address), GRANT_DATA, size, source, address); break;
            case ACQUIRE_PERM: answer(arrives(address), GRANT, size, source, address); break;
            default: fail("TileLink: the tile's request %lu on channel A is not known here", uint64_t(tap.a_bits_opcode));
            }
            if (is_measured && tap.a_bits_opcode >= ACQUIRE_BLOCK) counts["acquires"]++;
        }
        if (tap.c_valid) {
            const uint64_t size = tap.c_bits_size, line = tap.c_bits_address & ~(LINE - 1);
            const bool has_data = tap.c_bits_opcode == RELEASE_DATA;
            if (!has_data && tap.c_bits_opcode != RELEASE)
                fail("TileLink: the tile's message %lu on channel C is not known here", uint64_t(tap.c_bits_opcode));
            if (has_data) memory.write(line + BEAT * release_beats, tap.c_bits_data, 0xff);
            if (++release_beats == (has_data ? beats_of(size) : 1)) {
                release_beats = 0;
                l2.access(line);
                answer(cycle + options.l2_latency, RELEASE_ACK, size, tap.c_bits_source, line);
            }
        }
    }

    void record() {
        const uint64_t shown = tap.commits | tap.head;
        const bool rolls_back = tap.state == 2;
        const uint64_t row = rolls_back ? tap.tail_row : tap.head_row;
        const uint64_t index[] = {tap.index0, tap.index1, tap.index2, tap.index3};
        const uint32_t pc[] = {uint32_t(tap.pc0), uint32_t(tap.pc1), uint32_t(tap.pc2), uint32_t(tap.pc3)};
        const uint64_t flags = tap.commits | tap.retires << 4 | tap.head << 8 | tap.dispatches << 12 | tap.flush << 22 | tap.flush_kind << 23 |
                               tap.exception << 26 | tap.mispredict << 27 | tap.state << 28 | uint64_t{rolls_back} << 32 |
                               tap.head_row * INDICES << 48 | tap.mispredicted << 55;
        if (trace) {
            put(&flags, sizeof flags);
            for (unsigned bank = 0; bank < BANKS; bank++)
                if (shown >> bank & 1) put(&addresses[row * INDICES + bank], sizeof addresses[0]);
            for (unsigned bank = 0; bank < BANKS; bank++)
                if (tap.dispatches >> bank & 1) put(&pc[bank], sizeof pc[bank]);
        }
        for (unsigned bank = 0; bank < BANKS; bank++)
            if (tap.dispatches >> bank & 1) {
                addresses[index[bank] % addresses.size()] = pc[bank];
                of_instruction[pc[bank]][0]++;
            }
        for (unsigned bank = 0; bank < BANKS; bank++)
            if (tap.retires >> bank & 1) of_instruction[addresses[row * INDICES + bank]][1]++;
        if (tap.mispredict) of_instruction[addresses[tap.mispredicted % addresses.size()]][2]++;
        if (is_measured) {
            counts["dispatched"] += __builtin_popcountll(tap.dispatches);
            counts["retired"] += __builtin_popcountll(tap.retires);
            counts["mispredicted"] += tap.mispredict;
            counts["flushes"] += tap.flush;
            counts["cycles"]++;
        }
        if (tap.retires) last_commit = cycle;
        if (cycle - last_commit > HANGS)
            fail("%s: nothing commits since cycle %lu, at %#x", options.elf, last_commit, addresses[tap.head_row * INDICES]);
        if (tap.mscratch == mscratch) return;
        mscratch = tap.mscratch;
        if (mscratch == BEGINS) is_measured = true;
        else if (mscratch == ENDS) is_measured = false;
        else if (mscratch != DONE) values.push_back(mscratch);
    }

    // Prints as JSON what was counted between the program's marks, the values that it wrote to mscratch, and what its instructions did.
    void results() {
        printf("{\"all_cycles\": %lu", cycle);
        for (const auto &[name, count] : counts) printf(", \"%s\": %lu", name.c_str(), count);
        printf(", \"values\": [");
        for (size_t n = 0; n < values.size(); n++) printf("%s%lu", n ? ", " : "", values[n]);
        printf("], \"instructions\": {");
        const char *between = "";
        for (const auto &[address, of] : of_instruction) {
            printf("%s\"%#x\": [%lu, %lu, %lu]", between, address, of[0], of[1], of[2]);
            between = ", ";
        }
        printf("}}\n");
    }
};

uint64_t number(const char *text) {
    char *end = nullptr;
    const uint64_t value = strtoull(text, &end, 0);
    if (!*text || *end) fail("expected a number, found %s", text);
    return value;
}

} // namespace

int main(int argc, char **argv) {
    if (argc != 8 && argc != 9) fail("expected L2_LATENCY L2_KIB L2_WAYS MEMORY_LATENCY MEMORY_CYCLES MOST_CYCLES ELF [TRACE]");
    Options options;
    options.l2_latency = number(argv[1]);
    options.l2_kib = number(argv[2]);
    options.l2_ways = number(argv[3]);
    options.memory_latency = number(argv[4]);
    options.memory_cycles = number(argv[5]);
    options.most_cycles = number(argv[6]);
    options.elf = argv[7];
    options.trace = argc == 9 ? argv[8] : nullptr;
    Bench(options).run();
}
