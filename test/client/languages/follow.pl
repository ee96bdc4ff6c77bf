# The loop of the guide in Perl, which prints a number with 15 digits.
use strict;
use warnings;
use HTTP::Tiny;
use JSON::PP;

my $http = HTTP::Tiny->new(default_headers => { Authorization => "Bearer $ENV{CATALOG_API_KEY}" });
my $since = $ENV{SINCE} + 0;
my $more = 1;
while ($more) {
    my $response = $http->get("$ENV{BASE_URL}/api/v1/changes?since=$since");
    die "$response->{status} $response->{content}" unless $response->{success};
    my $page = decode_json($response->{content});
    print "$_->{svc_id}\n" for @{ $page->{data} };
    $since = $page->{meta}{next_since} + 0;
    $more = $page->{meta}{has_more};
}
