<?php
// The loop of the mirroring guide in PHP, for hours: it prints each entry as JSON, then saves the position in a file.
$state = getenv('STATE');
$since = is_file($state) ? file_get_contents($state) : getenv('SINCE');
$context = stream_context_create(['http' => [
    'header' => 'Authorization: Bearer ' . getenv('KEY'),
    'ignore_errors' => true,
    'timeout' => 10,
]]);
while (true) {
    $body = @file_get_contents(getenv('BASE_URL') . "/api/v1/changes?since=$since", false, $context);
    $status = $body === false ? 0 : (int) explode(' ', $http_response_header[0])[1];
    if ($status === 200) {
        $page = json_decode($body, true);
        foreach ($page['data'] as $entry) {
            echo json_encode($entry), "\n";
        }
        $since = sprintf('%.6f', $page['meta']['next_since']);
        file_put_contents("$state.new", $since);
        rename("$state.new", $state);
        if ($page['meta']['has_more']) {
            continue;
        }
    } elseif ($status !== 0 && $status !== 429 && $status < 500) {
        fwrite(STDERR, "$status $body\n");
        exit(1);
    }
    usleep((int) (getenv('INTERVAL') * 1e6));
}
