-- Servers keep the latest of each kind of failed request: of one key, with one code, of one operation.

create index failed_requests_kind on public.failed_requests (key_id, code, operation, at desc, id desc);
drop index public.failed_requests_key;
