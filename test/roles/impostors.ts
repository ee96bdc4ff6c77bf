import type pg from 'pg';

// What a role can put before PostgreSQL's own objects. It can use a schema of its own that it names first in its search
// path. It can also use pg_temp, where PostgreSQL looks for types and relations before all else. The
// catalog says which names matter: every word in the source of our functions, and every operator over their types. A condition
// such as "is distinct from" calls an operator that it does not name.

/** The schema of the role's own. */
export const SCHEMA = 'impostors';

/** Every use of an impostor fails with this SQLSTATE. Those of types fail with that of their check. */
export const MET = ['IMP01', '23514'] as const;

/** The words in the source of our functions, and the names of their transition tables. */
const WORDS = `
  select word from pg_proc, regexp_split_to_table(prosrc, '[^a-z0-9_]+') word where pronamespace = 'public'::regnamespace
  union select unnest(array[tgnewtable, tgoldtable]) from pg_trigger`;

/** The types of our columns, those that our functions name, and those that constants and sums have. */
const TYPES = `
  select atttypid as type from pg_attribute join pg_class c on c.oid = attrelid
   where relnamespace = 'public'::regnamespace and relkind in ('r', 'S') and attnum > 0 and not attisdropped
  union select oid from pg_type
   where typnamespace = 'pg_catalog'::regnamespace and typtype = 'b' and typname in (${WORDS})
  union select unnest('{boolean,integer,bigint,double precision,numeric,text,name,oid,bit,interval,timestamptz,xid,xid8,integer[],bigint[],numeric[],text[]}'::regtype[])::oid`;

const RAISES = 'language plpgsql as $f$ begin raise exception using errcode = $e$IMP01$e$; end $f$';

/** Statements that make the impostors, by kind. Each query runs while the search path is still PostgreSQL's. */
const MAKERS = {
  functions: `
    select format('create function ${SCHEMA}.%I(%s) returns %s ${RAISES}', p.proname,
                  pg_get_function_identity_arguments(p.oid), p.prorettype::regtype)
      from pg_proc p join pg_type r on r.oid = p.prorettype
     where p.pronamespace = 'pg_catalog'::regnamespace and p.prokind = 'f' and p.proname in (${WORDS})
       and (r.typtype <> 'p' or r.typname = 'void') and not p.proretset and p.provariadic = 0 and p.proargmodes is null
       and not exists (select from unnest(p.proargtypes) a join pg_type t on t.oid = a where t.typtype = 'p')`,
  aggregates: `
    select format('create function ${SCHEMA}.%I(%s) returns %s ${RAISES};', 'step_' || p.oid,
                  concat_ws(', ', r.oid::regtype, nullif(pg_get_function_identity_arguments(p.oid), '')), r.oid::regtype)
           || format('create aggregate ${SCHEMA}.%I(%s) (sfunc = ${SCHEMA}.%I, stype = %s)', p.proname,
                     coalesce(nullif(pg_get_function_identity_arguments(p.oid), ''), '*'), 'step_' || p.oid, r.oid::regtype)
      from pg_proc p join pg_type r on r.oid = p.prorettype
     where p.pronamespace = 'pg_catalog'::regnamespace and p.prokind = 'a' and p.proname in (${WORDS})
       and r.typtype <> 'p'
       and not exists (select from unnest(p.proargtypes) a join pg_type t on t.oid = a where t.typtype = 'p')`,
  operators: `
    with types as (${TYPES}),
    -- Operators of arrays and of rows stand for those of each array and of each of our tables.
    fits as (
      select type as declared, type as actual from types
      union all select 'anyarray'::regtype, type from types join pg_type t on t.oid = type where t.typcategory = 'A'
      union all select 'record'::regtype, reltype from pg_class
                 where relnamespace = 'public'::regnamespace and relkind = 'r'
    ),
    operators as (
      select row_number() over () as n, o.oprname, l.actual as left, r.actual as right, res.oid as result
        from pg_operator o
        left join fits l on l.declared = o.oprleft
        join fits r on r.declared = o.oprright and (o.oprleft <> o.oprright or l.actual = r.actual)
        join pg_type res on res.oid = o.oprresult
       where o.oprnamespace = 'pg_catalog'::regnamespace and (o.oprleft = 0) = (l.actual is null) and res.typtype = 'b'
    )
    select format('create function ${SCHEMA}.%I(%s) returns %s ${RAISES};', 'operator_' || n,
                  concat_ws(', ', o.left::regtype, o.right::regtype), o.result::regtype)
           || format('create operator ${SCHEMA}.%s (%s rightarg = %s, function = ${SCHEMA}.%I)', oprname,
                     'leftarg = ' || o.left::regtype || ',', o.right::regtype, 'operator_' || n)
      from operators o`,
  types: `
    select format('create domain %s.%I as %s check (false)', place, typname, oid::regtype)
      from pg_type, unnest('{pg_temp,${SCHEMA}}'::text[]) place where oid in (${TYPES}) and typcategory <> 'A'`,
  relations: `
    select case relkind when 'S' then format('create sequence %s.%I', place, relname)
           else format('create view %I.%I as select %s where ${SCHEMA}.refuse()', place, relname, columns) end
      from pg_class c, unnest('{pg_temp,${SCHEMA}}'::text[]) place,
           lateral (select string_agg(format('null::%s as %I', format_type(atttypid, null), attname), ', ' order by attnum)
                      as columns from pg_attribute where attrelid = c.oid and attnum > 0 and not attisdropped) a
     where relnamespace in ('public'::regnamespace, 'pg_catalog'::regnamespace) and relkind in ('r', 'v', 'S')
       and relname in (${WORDS})`,
  'transition tables': `
    select distinct format('create view %s.%I as select %s where ${SCHEMA}.refuse()', place, name, columns)
      from pg_trigger, unnest(array[tgnewtable, tgoldtable]) name, unnest('{pg_temp,${SCHEMA}}'::text[]) place,
           lateral (select string_agg(format('null::%s as %I', format_type(atttypid, null), attname), ', ' order by attnum)
                      as columns from pg_attribute where attrelid = 'public.titles'::regclass and attnum > 0) a
     where name is not null`,
} as const;

/** A kind of object that a search path chooses. */
export type Kind = keyof typeof MAKERS;

/** All casts between the types that our functions deal with, written `source as target`. */
export const CASTS = `
  with types as (${TYPES})
  select format('pg_catalog.%I as pg_catalog.%I', s.typname, t.typname) as cast
    from pg_type s, pg_type t where s.oid in (select type from types) and t.oid in (select type from types) and s.oid <> t.oid`;

/**
 * Plants all impostors by what the role of this session may do, and puts its own schema first in the search path.
 *
 * @param client - a session of the role, whose schema {@link SCHEMA} is
 * @returns how many there are of each kind
 */
export async function plantImpostors(client: pg.Client): Promise<Record<Kind, number>> {
  const made = {} as Record<Kind, number>;
  await client.query('set search_path = pg_catalog, pg_temp; begin');
  await client.query(`create function ${SCHEMA}.refuse() returns boolean ${RAISES}`);
  // All are asked for before the first is made: the questions themselves would meet them.
  const statements = new Map<Kind, string[]>();
  for (const [kind, sql] of Object.entries(MAKERS) as [Kind, string][]) statements.set(kind, await texts(client, sql));
  for (const [kind, each] of statements) {
    await client.query(each.join(';\n'));
    made[kind] = each.length;
  }
  await client.query('commit');
  await client.query(`set search_path = ${SCHEMA}, pg_catalog, public`);
  return made;
}

async function texts(client: pg.Client, sql: string): Promise<string[]> {
  const { rows } = await client.query<[string]>({ text: sql, rowMode: 'array' });
  return rows.map(([text]) => text);
}
