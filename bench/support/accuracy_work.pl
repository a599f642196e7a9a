# SPDX-License-Identifier: BSD-2-Clause
# perl of bench/accuracy: words of a text by regular expressions, counted, sorted, joined.
use strict;
use warnings;

my (%count, %after, $last);
my ($numbers, $assigned, $lines) = (0, 0, 0);
open(my $in, '<', $ARGV[0]) or die "$ARGV[0]: $!\n";
while (my $line = <$in>) {
	$lines++;
	$assigned++ if $line =~ /^\s*[a-z_.]+\s*=\s*[^=]/;
	$numbers += $1 while $line =~ /\b(\d{1,6})\b/g;
	for my $word (split /[^A-Za-z_]+/, $line) {
		next if length($word) < 2;
		$count{lc $word}++;
		$after{$last}{$word}++ if defined $last && length($last) < 5;
		$last = $word;
	}
}
my @top = sort { $count{$b} <=> $count{$a} || $a cmp $b } keys %count;
my $pairs = 0;
$pairs += scalar(keys %{ $after{$_} }) for keys %after;
my $text = join(' ', map { "$_:$count{$_}" } @top[0 .. ($#top < 2000 ? $#top : 2000)]);
$text =~ s/([aeiou])([a-z])/$2$1/g;
$text =~ tr/a-z/b-za/;
print length($text), " $lines $assigned $numbers $pairs ", substr($text, 0, 60), "\n";
