# A netlist of random look-up tables for nextpnr, in the format of Yosys: most inputs come from tables made shortly before.
use strict;
use warnings;

my ($count, $inputs) = @ARGV;
my $state = 20170620;
sub draw {
    my ($limit) = @_;
    $state = $state * 16807 % 2147483647;
    return $state % $limit;
}
# Bits 0 and 1 are constants to Yosys; first come the inputs, then the tables' outputs.
my $clock = 2;
my $first = 3;
my @cells;
for my $n (0 .. $count - 1) {
    my $bit = $first + $inputs + $n;
    my @from = map { my $back = 1 + draw(draw(4) ? 24 : $bit - $first); $back = $bit - $first if $back > $bit - $first; $bit - $back } 1 .. 4;
    my $init = join '', map { draw(2) } 1 .. 16;
    my $out = $n % 3 ? $bit : $bit + $count;
    push @cells, qq("l$n":{"type":"SB_LUT4","parameters":{"LUT_INIT":"$init"},"port_directions":{"I0":"input","I1":"input","I2":"input","I3":"input","O":"output"},)
        . qq("connections":{"I0":[$from[0]],"I1":[$from[1]],"I2":[$from[2]],"I3":[$from[3]],"O":[$out]}});
    # Each third one goes through a register, too, so that paths end.
    push @cells, qq("r$n":{"type":"SB_DFF","port_directions":{"C":"input","D":"input","Q":"output"},"connections":{"C":[$clock],"D":[$out],"Q":[$bit]}})
        if $n % 3 == 0;
}
my @ports = qq("clock":{"direction":"input","bits":[$clock]});
push @ports, qq("i$_":{"direction":"input","bits":[) . ($first + $_) . "]}" for 0 .. $inputs - 1;
push @ports, qq("o$_":{"direction":"output","bits":[) . ($first + $inputs + $count - 1 - $_) . "]}" for 0 .. 15;
print '{"creator":"","modules":{"top":{"attributes":{"top":"00000000000000000000000000000001"},"ports":{', join(',', @ports), '},"cells":{',
    join(",\n", @cells), "},\"netnames\":{}}}}\n";
