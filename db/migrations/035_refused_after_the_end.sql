-- When a request last carried the key after it had ended, so that its owner sees that it is still in use.

alter table public.api_keys add column last_refused_at timestamptz
  constraint api_keys_last_refused_at_finite check (isfinite(last_refused_at));
