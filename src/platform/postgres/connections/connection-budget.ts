import type { Knex } from 'knex';
import type { Logger } from 'pino';

/** Connections for commands, migrations and backups. The service warns when fewer would be left. */
const SPARE_CONNECTIONS = 5;

/** A state that an operator should change, although everything works. */
export interface Warning {
  /** For programs; its values are never renamed. */
  readonly code: string;
  /** For people. It is public and names no address. */
  readonly detail: string;
}

const FEW_CONNECTIONS: Warning = {
  code: 'few_database_connections',
  detail:
    'PostgreSQL has few more free connections than this server may still open. ' +
    'Raise max_connections, or lower DATABASE_POOL_SIZE.',
};

/**
 * How many connections PostgreSQL still gives to this role. The limits are max_connections without the reserved ones,
 * the role's limit and the database's. A superuser has only the first limit, with the reserved ones. A plain role does
 * not see the kind of others' connections; background processes have no database.
 */
const CONNECTIONS_LEFT = `
  with used as (
    select count(*) as server,
           count(*) filter (where datname = current_database()) as database,
           count(*) filter (where usename = current_user) as role
      from pg_stat_activity
     where datid is not null and coalesce(backend_type, 'client backend') = 'client backend'
  )
  select case when rolsuper
           then current_setting('max_connections')::integer - server
           else least(
             current_setting('max_connections')::integer
               - current_setting('superuser_reserved_connections')::integer
               - coalesce(current_setting('reserved_connections', true), '0')::integer
               - server,
             nullif(datconnlimit, -1) - database,
             nullif(rolconnlimit, -1) - role)
         end::integer as left
    from used, pg_roles, pg_database
   where rolname = current_user and datname = current_database()`;

export interface ConnectionDemand {
  /** The most connections of one server process. */
  readonly ofProcess: number;
  /** How many server processes there are. */
  readonly processes: number;
  /** How many connections this process has now. */
  readonly held: () => number;
}

/** Compares the connections that a server may still ask for with those that its database has left. */
export class ConnectionBudget {
  #isShort = false;

  constructor(
    private readonly db: Knex,
    private readonly demand: ConnectionDemand,
    private readonly log: Logger,
  ) {}

  get warnings(): readonly Warning[] {
    return this.#isShort ? [FEW_CONNECTIONS] : [];
  }

  /** Asks the database, and logs a change. Takes a bounded time and never rejects: others report an outage. */
  async check(): Promise<void> {
    let left: number;
    try {
      left = (await this.db.raw<{ rows: { left: number }[] }>(CONNECTIONS_LEFT)).rows[0]?.left ?? Infinity;
    } catch {
      return;
    }
    const { ofProcess, processes, held } = this.demand;
    // Assumes that the other processes have as many as this one.
    const wanted = (ofProcess - held()) * processes;
    const isShort = left < wanted + SPARE_CONNECTIONS;
    if (isShort === this.#isShort) return;
    this.#isShort = isShort;
    const numbers = { left, may_still_open: wanted };
    if (isShort) this.log.warn(numbers, `few database connections. ${FEW_CONNECTIONS.detail}`);
    else this.log.info(numbers, 'enough database connections');
  }
}
