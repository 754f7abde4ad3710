# A network for the minimum cost flow, in DIMACS format: suppliers and consumers on a ring, and random arcs.
use strict;
use warnings;

my ($nodes, $arcs) = @ARGV;
my $state = 20170620;
sub draw {
    my ($limit) = @_;
    $state = $state * 16807 % 2147483647;
    return $state % $limit;
}
my @supply = (0) x $nodes;
for (my $node = 0; $node < $nodes; $node += 5) {
    my $amount = 1 + draw(20);
    $supply[$node] += $amount;
    $supply[draw($nodes)] -= $amount;
}
print "p min $nodes ", $nodes + $arcs, "\n";
$supply[$_] and print "n ", $_ + 1, " $supply[$_]\n" for 0 .. $nodes - 1;
# The ring, dear, so that there is a flow.
print "a ", $_ + 1, ' ', ($_ + 1) % $nodes + 1, " 0 1000000 5000\n" for 0 .. $nodes - 1;
print 'a ', 1 + draw($nodes), ' ', 1 + draw($nodes), ' 0 ', 1 + draw(50), ' ', 1 + draw(1000), "\n" for 1 .. $arcs;
