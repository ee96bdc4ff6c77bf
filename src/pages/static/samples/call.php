<?php
$context = stream_context_create(['http' => [
    'header' => 'Authorization: Bearer ' . getenv('CATALOG_API_KEY'),
    'ignore_errors' => true,
]]);
$response = fopen('{{url}}', 'r', false, $context);
if ($response === false) {
    exit(1);
}
$body = json_decode(stream_get_contents($response), true);
$statusLine = stream_get_meta_data($response)['wrapper_data'][0];
if (!str_contains($statusLine, ' 200 ')) {
    fwrite(STDERR, "$body[status] $body[detail]\n");
    exit(1);
}
print_r($body);
