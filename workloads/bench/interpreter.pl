# SPDX-License-Identifier: MIT OR Apache-2.0
# Work for a large interpreter: words, hashes, patterns, sorting, closures, formatted output.
use strict;
use warnings;

my $state = 12345;
sub next_number { $state = ($state * 1103515245 + 12345) % 2147483648; return $state >> 8 }

my @syllables = qw(ka lo mi ne ru so ta vi xe zu bra gli);
my $text = join ' ', map { join '', map { $syllables[next_number() % @syllables] } 1 .. 1 + next_number() % 3 } 1 .. 3000;

my %count;
$count{$_}++ for split / /, $text;
my @ranked = sort { $count{$b} <=> $count{$a} || $a cmp $b } keys %count;

my $changed = 0;
for my $word (@ranked[0 .. 199]) {
    (my $other = $word) =~ s/([aeiou])([^aeiou]+)/$2$1/g;
    $changed++ while $other =~ /(?:ta|ru|lo)+[a-z]/g;
}

my %closure = map { my $n = $_; ($n => sub { $_[0] * $n + length $_[1] }) } 0 .. 9;
my $sum = 0;
$sum = ($sum + $closure{$_ % 10}->($_, $ranked[$_ % @ranked])) % 1000003 for 1 .. 12000;

my @table = map { sprintf '%-12s %6d %s', $_, $count{$_}, scalar reverse $_ } @ranked[0 .. 299];
my $check = 0;
$check = ($check * 33 + ord) % 4294967291 for split //, join "\n", @table;
print "checksum $changed $sum $check\n";
