import pg from 'pg';

/** Rows come as arrays of text: what goes into JSON as it is need not become a number first. */
type Row = readonly string[];

const AS_TEXT = { getTypeParser: () => (text: unknown) => text } as unknown as pg.CustomTypesConfig;

const CALLER = {
  name: 'caller',
  rowMode: 'array' as const,
  text: `select k.id, k.prefix, d.id, d.project_name, d.attribution_required,
                p.id, p.name, p.requests_per_minute, p.requests_per_day, p.commercial_use
           from api_keys k join developers d on d.id = k.developer_id join plans p on p.id = k.plan_id
          where k.hash = $1 and k.revoked_at is null and d.suspended_at is null`,
};
const STATS = {
  name: 'stats',
  rowMode: 'array' as const,
  text: 'select titles, movies, series, available_in_library, people, collections from catalog_counts limit 1',
};
const TITLE = {
  name: 'title',
  rowMode: 'array' as const,
  text: `select svc_id, media_type, title, updated_at, has_bundles, available_in_library, created_at
           from titles where svc_id = $1`,
};
const PAGE_SIZE = 200;
// From the position itself on. An entry there shows that the position does not lie past the end of the feed, without a
// second query.
const CHANGES = {
  name: 'changes',
  rowMode: 'array' as const,
  text: `select svc_id, media_type, title, updated_at, has_bundles
           from titles where updated_at >= $1 order by updated_at limit ${PAGE_SIZE + 2}`,
};

/** A caller, and the answer of `/me`, which depends on nothing else. */
export interface Caller {
  readonly developerId: string;
  readonly planId: string;
  readonly perMinute: string;
  readonly perDay: string;
  readonly me: string;
}

/** The queries of the operations, each a named prepared statement, answered as the JSON that the client gets. */
export class Database {
  readonly #pool: pg.Pool;

  constructor(url: string, poolSize: number) {
    this.#pool = new pg.Pool({
      connectionString: url,
      max: poolSize,
      options: '-c timezone=UTC -c datestyle=ISO',
      types: AS_TEXT,
      idleTimeoutMillis: 0,
    });
    // The database goes away first.
    this.#pool.on('error', () => undefined);
  }

  async findCaller(hash: Buffer): Promise<Caller | undefined> {
    const row = (await this.#rows({ ...CALLER, values: [hash] }))[0];
    if (row === undefined) return undefined;
    const [, prefix = '', developerId = '', project = '', attribution, ...plan] = row;
    const [planId = '', planName = '', perMinute = '', perDay = '', commercial] = plan;
    const planJson =
      `{"id":"${planId}","name":${JSON.stringify(planName)},"requests_per_minute":${perMinute},` +
      `"requests_per_day":${perDay},"commercial_use":${toBoolean(commercial)}}`;
    return {
      developerId,
      planId,
      perMinute,
      perDay,
      me:
        `{"data":{"project_name":${JSON.stringify(project)},"key_prefix":"${prefix}","plan":${planJson},` +
        `"attribution_required":${toBoolean(attribution)}}}`,
    };
  }

  async stats(): Promise<string> {
    const [titles, movies, series, available, people, collections] = (await this.#rows(STATS))[0] ?? [];
    return (
      `{"data":{"titles":${titles ?? ''},"movies":${movies ?? ''},"series":${series ?? ''},` +
      `"available_in_library":${available ?? ''},"people":${people ?? ''},"svc_collections":${collections ?? ''}}}`
    );
  }

  async title(id: string): Promise<string | undefined> {
    const row = (await this.#rows({ ...TITLE, values: [id] }))[0];
    if (row === undefined) return undefined;
    const [, , , , , available, createdAt = ''] = row;
    return (
      `{"data":{${entryMembers(row, toRfc3339(row[3] ?? ''))},` +
      `"available_in_library":${toBoolean(available)},"created_at":"${toRfc3339(createdAt)}"}}`
    );
  }

  /** @param since - seconds, with at most six decimals */
  async changes(since: string): Promise<string | undefined> {
    const position = secondsToRfc3339(since);
    const rows = await this.#rows({ ...CHANGES, values: [position] });
    // Past the end of the feed more has to be looked at; nobody who follows gets there.
    if (rows.length === 0) return undefined;
    const first = toRfc3339(rows[0]?.[3] ?? '') === position ? 1 : 0;
    const end = Math.min(rows.length, first + PAGE_SIZE);
    let data = '';
    let last = position;
    for (let i = first; i < end; i++) {
      const row = rows[i] ?? [];
      last = toRfc3339(row[3] ?? '');
      data += `${i > first ? ',' : ''}{${entryMembers(row, last)}}`;
    }
    return `{"data":[${data}],"meta":{"has_more":${rows.length > end},"next_since":${toSeconds(last)}}}`;
  }

  async #rows(query: pg.QueryArrayConfig): Promise<readonly Row[]> {
    return (await this.#pool.query<string[]>(query)).rows;
  }
}

/** The id and the media type are of a form that needs no escaping. */
function entryMembers([id, mediaType, title, , hasBundles]: Row, updatedAt: string): string {
  return (
    `"svc_id":"${id ?? ''}","media_type":"${mediaType ?? ''}","title":${JSON.stringify(title)},` +
    `"updated_at":"${updatedAt}","has_bundles":${toBoolean(hasBundles)}`
  );
}

function toBoolean(text: string | undefined): string {
  return text === 't' ? 'true' : 'false';
}

const WHOLE = 'YYYY-MM-DDTHH:MM:SS'.length;

/** From `2026-11-20 23:40:05.12+00`. */
function toRfc3339(text: string): string {
  return `${text.slice(0, 10)}T${text.slice(11, WHOLE)}.${text.slice(WHOLE + 1, -3).padEnd(6, '0')}Z`;
}

function toSeconds(time: string): number {
  return (Date.parse(`${time.slice(0, WHOLE)}Z`) * 1000 + Number(time.slice(WHOLE + 1, -1))) / 1e6;
}

function secondsToRfc3339(since: string): string {
  const [whole = '', fraction = ''] = since.split('.');
  return `${new Date(Number(whole) * 1000).toISOString().slice(0, WHOLE)}.${fraction.padEnd(6, '0')}Z`;
}
