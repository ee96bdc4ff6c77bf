/** The schemas of the peer's responses, for Fastify's serialiser. */

type Schema = Readonly<Record<string, unknown>>;

const TEXT: Schema = { type: 'string' };
const INTEGER: Schema = { type: 'integer' };
const FLAG: Schema = { type: 'boolean' };

const object = (properties: Readonly<Record<string, Schema>>): Schema => ({ type: 'object', properties });

export const ME_ANSWER = object({
  data: object({
    project_name: TEXT,
    key_prefix: TEXT,
    plan: object({
      id: TEXT,
      name: TEXT,
      requests_per_minute: INTEGER,
      requests_per_day: INTEGER,
      commercial_use: FLAG,
    }),
    attribution_required: FLAG,
  }),
});

export const STATS_ANSWER = object({
  data: object({
    titles: INTEGER,
    movies: INTEGER,
    series: INTEGER,
    available_in_library: INTEGER,
    people: INTEGER,
    svc_collections: INTEGER,
  }),
});

const ENTRY = { svc_id: TEXT, media_type: TEXT, title: TEXT, updated_at: TEXT, has_bundles: FLAG };

export const TITLE_ANSWER = object({ data: object({ ...ENTRY, available_in_library: FLAG, created_at: TEXT }) });

export const CHANGES_ANSWER = object({
  data: { type: 'array', items: object(ENTRY) },
  meta: object({ has_more: FLAG, next_since: { type: 'number' } }),
});
