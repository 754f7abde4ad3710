# Reads a list of words, writes itself a mailbox of it, and sorts that: headers and bodies are taken apart by
# patterns, words are counted for a naive Bayesian filter, and what looks alike is brought together.
use strict;
use warnings;

my ($list, $count) = @ARGV;
open my $file, '<', $list or die "$list: $!\n";
my @words = grep { /^[a-z]{3,9}$/ } map { chomp; $_ } <$file>;
close $file;

my $state = 20170620;
sub draw {
    my ($limit) = @_;
    $state = ($state * 1103515245 + 12345) & 0x7fffffff;
    return int(($state >> 8) * $limit / 0x800000);
}
# A few words are frequent, as in a text.
sub word { return $words[draw(1 + draw(1 + draw(scalar @words)))] }

my @days = qw(Mon Tue Wed Thu Fri Sat Sun);
my @months = qw(Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec);
my @offers = ('cheap %s, only $%d!', 'WINNER: you have %s of %d', 'click http://%s.example/%d now', 'no %s? 100%% free, call %d');

sub message {
    my ($number) = @_;
    my $spam = draw(3) == 0;
    my $text = sprintf "From %s\@%s.example %s %s %2d %02d:%02d:%02d 2017\n", word(), word(), $days[draw(7)],
        $months[draw(12)], 1 + draw(28), draw(24), draw(60), draw(60);
    $text .= "Subject: " . ($spam ? uc word() : word()) . ' ' . join(' ', map { word() } 1 .. 3) . "\n";
    $text .= "Message-ID: <$number." . draw(1000000) . "\@" . word() . ".example>\n";
    $text .= "Received: from " . word() . ".example (" . join('.', map { draw(256) } 1 .. 4) . ") by mx\n" for 1 .. 1 + draw(3);
    $text .= "\n";
    for (1 .. 4 + draw(8)) {
        my $line = join ' ', map { word() } 1 .. 6 + draw(6);
        $line = sprintf $offers[draw(scalar @offers)], word(), draw(1000) if $spam && draw(3) == 0;
        $text .= ucfirst($line) . ".\n";
    }
    return ($text . "\n", $spam);
}

my @rules = (
    [ qr/\$\d+/, 1.5 ], [ qr/\b(?:free|winner|cheap)\b/i, 1.2 ], [ qr{https?://[\w.-]+/\S*}, 0.7 ], [ qr/!\s*$/m, 0.4 ],
    [ qr/^Subject: [A-Z]{3,}\b/m, 1.0 ], [ qr/\d{1,3}(?:\.\d{1,3}){3}.*\n.*\d{1,3}(?:\.\d{1,3}){3}/, 0.2 ],
    [ qr/(\b\w+\b)\s+\1\b/i, 0.1 ], [ qr/\bcall\s+\d+/, 0.9 ],
);

my (%seen, %total, %thread, %host, @sorted);
my ($right, $digest) = (0, 0);
for my $number (1 .. $count) {
    my ($text, $spam) = message($number);
    my ($head, $body) = split /\n\n/, $text, 2;
    my %field;
    while ($head =~ /^([\w-]+)(?::| )\s*(.*)$/mg) {
        push @{ $field{lc $1} }, $2;
    }
    $host{$1}++ while $head =~ /\bfrom (\w+)\.example/g;

    my $score = 0;
    for my $rule (@rules) {
        my ($pattern, $weight) = @$rule;
        $score += $weight if $text =~ $pattern;
    }
    my %token;
    $token{lc $_}++ for $body =~ /[A-Za-z]{3,}/g;
    my $bayes = 0;
    for my $token (sort keys %token) {
        my $good = ($seen{good}{$token} // 0) + 1;
        my $bad = ($seen{bad}{$token} // 0) + 1;
        $bayes += log($bad * ($total{good} // 1) / ($good * ($total{bad} // 1)));
    }
    my $guess = $score + 0.2 * $bayes > 1;
    $right++ if $guess == $spam;
    my $kind = $spam ? 'bad' : 'good';
    $seen{$kind}{$_} += $token{$_} for keys %token;
    $total{$kind} += keys %token;

    (my $plain = $body) =~ tr/A-Za-z \n//cd;
    $plain =~ s/\s+/ /g;
    $plain = join ' ', reverse split / /, $plain;
    $digest = ($digest * 31 + $_) & 0xffffffff for unpack 'C*', $plain;
    my ($subject) = @{ $field{subject} };
    push @{ $thread{lc substr $subject, 0, 3} }, $number;
    push @sorted, { number => $number, score => $score, subject => $subject, from => $field{from}[0] };
}

@sorted = sort { $b->{score} <=> $a->{score} or $a->{subject} cmp $b->{subject} or $a->{number} <=> $b->{number} } @sorted;
printf "%s of %d right, digest %08x\n", $right, $count, $digest;
printf "%4.1f %5d %-40.40s %s\n", @{$_}{qw(score number subject from)} for @sorted;
for my $key (sort { @{ $thread{$b} } <=> @{ $thread{$a} } or $a cmp $b } keys %thread) {
    print "$key: @{ $thread{$key} }\n";
}
print map { "$_ $host{$_}\n" } sort { $host{$b} <=> $host{$a} or $a cmp $b } keys %host;
