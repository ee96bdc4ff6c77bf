import pg from 'pg';

/** Each query yields the definitions of one kind of object, in order of name, without the migrations' own tables. */
const DEFINITIONS = [
  `select format('create sequence %s as %s start %s minvalue %s;', c.oid::regclass, format_type(s.seqtypid, null), s.seqstart, s.seqmin)
     from pg_sequence s join pg_class c on c.oid = s.seqrelid
    where c.relnamespace = 'public'::regnamespace
      and not exists (select from pg_depend d where d.objid = c.oid and d.deptype in ('a', 'i'))
    order by c.relname`,
  `select format(E'create %stable %s (\\n%s\\n)%s;', case c.relpersistence when 'u' then 'unlogged ' end, c.oid::regclass,
            string_agg(format('  %I %s%s%s%s', a.attname, format_type(a.atttypid, a.atttypmod),
                coalesce(' collate ' || quote_ident(nullif(l.collname, 'default')), ''),
                case when a.attidentity <> '' then ' generated always as identity'
                     else coalesce(' default ' || pg_get_expr(d.adbin, d.adrelid), '') end,
                case when a.attnotnull then ' not null' else '' end), E',\\n' order by a.attnum)
            || coalesce((select string_agg(format(E',\\n  constraint %I %s', k.conname, pg_get_constraintdef(k.oid)), '' order by k.conname)
                           from pg_constraint k where k.conrelid = c.oid and k.contype <> 'n'), ''),
            coalesce(' with (' || array_to_string(c.reloptions, ', ') || ')', ''))
     from pg_class c
     join pg_attribute a on a.attrelid = c.oid and a.attnum > 0 and not a.attisdropped
     left join pg_attrdef d on d.adrelid = c.oid and d.adnum = a.attnum
     left join pg_collation l on l.oid = a.attcollation
    where c.relnamespace = 'public'::regnamespace and c.relkind = 'r' and c.relname not like 'migrations%'
    group by c.oid, c.relname, c.relpersistence, c.reloptions order by c.relname`,
  `select format(E'create view %s as\\n%s', c.oid::regclass, pg_get_viewdef(c.oid))
     from pg_class c where c.relnamespace = 'public'::regnamespace and c.relkind = 'v' order by c.relname`,
  `select pg_get_indexdef(i.indexrelid) || ';'
     from pg_index i join pg_class c on c.oid = i.indexrelid join pg_class t on t.oid = i.indrelid
    where c.relnamespace = 'public'::regnamespace and t.relname not like 'migrations%'
      and not exists (select from pg_constraint k where k.conindid = i.indexrelid)
    order by c.relname`,
  `select pg_get_functiondef(p.oid) || ';' from pg_proc p where p.pronamespace = 'public'::regnamespace order by p.proname`,
  `select pg_get_triggerdef(g.oid) || ';' from pg_trigger g join pg_class c on c.oid = g.tgrelid
    where c.relnamespace = 'public'::regnamespace and not g.tgisinternal order by c.relname, g.tgname`,
  `select format('alter table %s enable %s trigger %I;', g.tgrelid::regclass,
            case g.tgenabled when 'A' then 'always' else 'replica' end, g.tgname)
     from pg_trigger g join pg_class c on c.oid = g.tgrelid
    where c.relnamespace = 'public'::regnamespace and g.tgenabled in ('A', 'R') order by c.relname, g.tgname`,
  // All that others than the owner may call. By default PostgreSQL lets everybody.
  `select format('grant execute on function %s to %s;', p.oid::regprocedure,
            case a.grantee when 0 then 'public' else a.grantee::regrole::text end)
     from pg_proc p, aclexplode(coalesce(p.proacl, acldefault('f', p.proowner))) a
    where p.pronamespace = 'public'::regnamespace and a.grantee <> p.proowner order by p.proname, 1`,
];

/** Describes a database's schema as SQL, in an order that depends on nothing but the schema. */
export async function dumpSchema(url: string): Promise<string> {
  const client = new pg.Client({ connectionString: url });
  await client.connect();
  try {
    const parts = ['-- Made from the migrations by "make generate"; not to be edited.'];
    for (const sql of DEFINITIONS) {
      const { rows } = await client.query<[string]>({ text: sql, rowMode: 'array' });
      parts.push(...rows.map(([definition]) => definition.replace(/\n;$/, ';')));
    }
    return `${parts.join('\n\n')}\n`;
  } finally {
    await client.end();
  }
}
