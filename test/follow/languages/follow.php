<?php
// The loop of the guide in PHP, which prints a number with 14 digits. EXACT=1 prints all of them.
$since = (float) getenv('SINCE');
$context = stream_context_create(['http' => ['header' => 'Authorization: Bearer ' . getenv('KEY')]]);
do {
    $position = getenv('EXACT') ? sprintf('%.6f', $since) : $since;
    $page = json_decode(file_get_contents(getenv('BASE_URL') . "/api/v1/changes?since=$position", false, $context), true);
    foreach ($page['data'] as $entry) {
        echo $entry['svc_id'], "\n";
    }
    $since = $page['meta']['next_since'];
} while ($page['meta']['has_more']);
