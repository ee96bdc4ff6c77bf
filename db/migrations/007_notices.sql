-- Notices for the operator's webhook. Servers record what has happened, each occurrence once, and send it until the
-- receiver accepts it. Nothing here is secret: a notice names keys by their prefixes and developers by their ids.

create table public.notices (
  -- The receiver gets it with each attempt, and recognises repetitions by it.
  id uuid primary key default gen_random_uuid(),
  type text collate "C" not null
    constraint notices_type_format check (type ~ '^[a-z]+[.][a-z_]+$'),
  -- What the notice is about. Servers compare it before they record another notice.
  subject text collate "C" not null,
  occurred_at timestamptz not null default now(),
  data jsonb not null,
  created_at timestamptz not null default now(),
  attempts integer not null default 0,
  -- While a server sends the notice, this keeps the others from sending it.
  next_attempt_at timestamptz not null default now(),
  delivered_at timestamptz,
  given_up_at timestamptz
);

create index notices_subject on public.notices (subject, occurred_at);
create index notices_pending on public.notices (next_attempt_at) where delivered_at is null and given_up_at is null;
