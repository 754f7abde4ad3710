#!/bin/sh
# Rounds of programs that keep all harts busy: soak.sh ROUNDS. Ends after so many rounds, or after the one in which a file `stop` appears in
# the folder that it was started in. Lines that begin with "soak: " say what programs print; those of a round are the same on any machine.
export PATH=/usr/bin:/usr/sbin:/usr/games LC_ALL=C
stop=$PWD/stop
work=/tmp/soak
threads=$(nproc)

# say WORDS: prints a line that is compared.
say() { echo "soak: $round $*"; }

# Make assembles files, as many at once as there are harts, and links a program, which is run: processes, pipes, files.
build() {
    {
        printf '.globl _start\n_start: li s0, 0\n'
        for n in 1 2 3 4 5 6; do
            printf 'call f%d\nadd s0, s0, a0\n' $n
            awk -v n=$n -v r="$round" 'BEGIN {
                print ".globl f" n "\nf" n ": li a0, " n * r % 97
                for (i = 0; i < 100; i++) print "addi a0, a0, " (i * r) % 11 "\nbeqz a0, 1f\nxori a0, a0, " n "\n1:"
                print "ret" }' > f$n.s
        done
        printf 'andi a0, s0, 63\nli a7, 93\necall\n'
    } > start.s
    # shellcheck disable=SC2016 # make's variables
    printf '%s\n\t%s\n' 'program: $(patsubst %.s,%.o,$(wildcard *.s))' 'riscv64-linux-gnu-ld -o $@ $(sort $^)' \
        '%.o: %.s' 'riscv64-linux-gnu-as -o $@ $<' > Makefile
    make -s -j "$threads"
    say "make: status $?, $(sha256sum < program), the program's end $(./program; echo $?)"
}

# A server with threads for input and output, and four clients at once: sockets, epoll, futexes.
serve() {
    redis-server --port 0 --unixsocket "$work/socket" --save '' --appendonly no --io-threads 2 --enable-debug-command yes \
        --daemonize yes > server.log
    tries=0
    until redis-cli -s socket ping > pong 2>&1 && grep -q PONG pong; do
        tries=$((tries + 1))
        [ "$tries" -lt 200 ] || { say "redis: does not answer"; return; }
        sleep 0.05
    done
    clients=
    for client in 1 2 3 4; do
        seq 50 | awk -v c=$client -v r="$round" '{ print "incr shared"; print "rpush list" c, $1 * c % 97; print "hset h" c, $1, $1 * r % 1009 }' |
            redis-cli -s socket > "client$client" &
        clients="$clients $!"
    done
    # shellcheck disable=SC2086 # a list of numbers
    wait $clients
    redis-benchmark -s socket -q -c 8 -n 200 -t incr,lpush > benchmark.log
    say "redis: status $?, $(redis-cli -s socket get shared) $(redis-cli -s socket get counter:__rand_int__)" \
        "$(redis-cli -s socket llen mylist), clients $(sort -n client1 client2 client3 client4 | sha256sum | cut -c 1-16)"
    redis-cli -s socket del shared counter:__rand_int__ mylist > deleted
    say "redis: digest $(redis-cli -s socket debug digest)"
    redis-cli -s socket shutdown nosave
}

# Futexes, pipes, message queues, atomics, shared lines, processes and switches, each of which checks itself. Stressors such as mutex and sem are
# left out: those wait for their time to be over (`pause`), however many operations were asked for.
stress() {
    stress-ng --verify --no-rand-seed --temp-path "$work" --futex 2 --futex-ops 100 --pipe 2 --pipe-ops 200 --msg 2 --msg-ops 500 \
        --atomic 2 --atomic-ops 2 --cacheline 4 --cacheline-ops 4 --fork 2 --fork-ops 10 --switch 2 --switch-ops 200 > stress.log 2>&1
    say "stress-ng: status $?, $(sed -n 's/^stress-ng: [a-z]*: *\[[0-9]*\] \(passed\|failed\|untrustworthy\): */\1 /p' stress.log | tr '\n' ' ')"
}

# Threads that compress blocks, and what reads them again.
compress() {
    seq "$round" 8000 > numbers
    xz -T "$threads" -0 --block-size=8KiB -c numbers > numbers.xz
    pigz -p "$threads" -n -b 32 -c numbers > numbers.gz
    say "xz: status $?, $(sha256sum < numbers.xz | cut -c 1-16), pigz $(sha256sum < numbers.gz | cut -c 1-16)"
    xz -d -T "$threads" -c numbers.xz | cmp - numbers && pigz -d -c numbers.gz | cmp - numbers
    say "read again: status $?"
}

round=0
while [ "$round" -lt "$1" ] && [ ! -e "$stop" ]; do
    round=$((round + 1))
    mkdir -p $work
    cd $work || exit
    build
    serve
    stress
    compress
    cd / || exit
    rm -rf $work
    say "end of round"
done
echo "soak: rounds $round"
