import type { Knex } from 'knex';
import { LRUCache } from 'lru-cache';
import type { VNode } from 'preact';
import { nobody } from '../../../admission/change-callers.js';
import { createDeveloper, MAX_PROJECT_NAME, type Developer } from '../../../developers/developers.js';
import { readUsageByDeveloper, type UsageSort } from '../../../usage/usage-totals.js';
import {
  formParser,
  hashOfForm,
  ONCE_FIELD,
  type Submission,
  Checkbox,
  CHECKBOX,
  ErrorSummary,
  Form,
} from '../../parts/forms/form.js';
import { pageAddress, queryOf, seeOther } from '../../parts/web/addresses.js';
import { Badge, Button, UserText } from '../../parts/content/components.js';
import { Table } from '../../parts/content/table.js';
import { ProjectName, PROJECT_NAME_FIELD } from '../../parts/forms/project-name.js';
import { ListSearch, optionOf, Pager, readListPage, readListSearch, Switch } from '../../parts/forms/list-page.js';
import { findLeftOut, LeftOut } from '../../parts/forms/left-out.js';
import { performAct } from '../acts.js';
import type { PageContext, PageRouter } from '../../parts/context.js';
import { COUNT_COLUMNS, countCells } from '../../parts/usage.js';
import type { OperatorParts } from '../context.js';
import { operatorPage } from '../layout.js';

/** Where the developers are listed. */
export const DEVELOPERS = '/developers';

/** The most forms whose outcome is kept. */
const MAX_FORMS = 100;

const parseNew = formParser({
  ...ONCE_FIELD,
  ...PROJECT_NAME_FIELD,
  attribution: CHECKBOX,
});

type NewDeveloper = Submission<'project_name' | 'attribution'>;

/** The periods whose requests are shown. The last one is the default. */
const PERIODS = {
  '1h': { name: 'Last hour', span: { hours: 1 } },
  today: { name: 'Today', span: { days: 1 } },
  '30d': { name: '30 days', span: { days: 30 } },
} as const;

/** The orders of the list. The first one is the default. */
const SORTS: Readonly<Record<UsageSort | 'newest', string>> = {
  newest: 'Newest',
  requests: 'Requests',
  'rate-limited': 'Rate limited',
  'client-errors': 'Client errors',
  'server-errors': 'Server errors',
};

/** Reads the page of the developers that an address names. @returns undefined once the request is redirected */
async function loadDevelopers(ctx: PageContext, db: Knex) {
  const search = readListSearch(ctx, MAX_PROJECT_NAME);
  if (search === undefined) return undefined;
  const chosen = {
    period: optionOf(queryOf(ctx), 'period', PERIODS),
    sort: optionOf(queryOf(ctx), 'sort', SORTS),
  };
  const { period = '30d', sort = 'newest' } = chosen;
  const query = { span: PERIODS[period].span, ...(sort !== 'newest' && { sort }), ...(search !== '' && { search }) };
  const developers = await readListPage(ctx, { rank: 'number', developerId: 'number' }, (part) =>
    readUsageByDeveloper(db, { ...query, ...part }),
  );
  return { developers, search, period, sort, leftOut: findLeftOut(ctx, chosen) };
}

type DeveloperList = NonNullable<Awaited<ReturnType<typeof loadDevelopers>>>;

/** The developers and their requests. */
function DeveloperListPage({ developers, search, period, sort, leftOut }: DeveloperList): VNode {
  const addressOf = (changed: Partial<Record<'period' | 'sort', string>>): string =>
    pageAddress(DEVELOPERS, Object.entries({ ...(search !== '' && { q: search }), period, sort, ...changed }));
  return (
    <>
      <LeftOut filters={leftOut} />
      <div class="toolbar">
        <p>
          <Button href={`${DEVELOPERS}/new`} tone="primary" label="Create a developer" />
        </p>
        <ListSearch
          path={DEVELOPERS}
          query={{ period, sort }}
          search={search}
          label="Filter by ID, name or key prefix"
          maxLength={MAX_PROJECT_NAME}
        />
      </div>
      <div class="toolbar">
        <Switch
          label="Requests of"
          options={Object.fromEntries(Object.entries(PERIODS).map(([each, { name }]) => [each, name]))}
          chosen={period}
          addressOf={(each) => addressOf({ period: each })}
        />
        <Switch label="Sort by" options={SORTS} chosen={sort} addressOf={(each) => addressOf({ sort: each })} />
      </div>
      {developers.rows.length === 0 ? (
        <p class="empty">
          {search !== '' && 'No developer matches'}
          {search === '' && (sort === 'newest' ? 'There are no developers yet' : 'No developer had such requests then')}
        </p>
      ) : (
        <Table
          caption="Developers"
          hasCards
          columns={['Developer', ...COUNT_COLUMNS]}
          rows={developers.rows.map(({ developerId, projectName, suspendedAt, ...counts }) => [
            <span>
              <a href={`${DEVELOPERS}/${developerId}`}>
                <UserText text={projectName} />
              </a>{' '}
              <span class="muted small">ID {developerId}</span>{' '}
              {suspendedAt !== null && <Badge tone="danger">Suspended</Badge>}
            </span>,
            ...countCells(counts),
          ])}
        />
      )}
      <Pager page={developers} />
      <p class="muted small">
        The last hour is this clock hour and the one before; days are those of UTC. Counts are up to two minutes old,
        those of 30 days up to fifteen.
      </p>
    </>
  );
}

/** Adds the list of developers, and the form that creates one. */
export function addDevelopers(router: PageRouter, parts: OperatorParts): void {
  router.get(DEVELOPERS, async (ctx) => {
    const list = await loadDevelopers(ctx, parts.db);
    if (list !== undefined)
      operatorPage(ctx, { title: 'Developers', tab: 'developers' }, <DeveloperListPage {...list} />);
  });

  /** The developer that each form has created, by the hash of its token: a form that was sent twice creates one. */
  const created = new LRUCache<string, number, () => Promise<number>>({
    max: MAX_FORMS,
    fetchMethod: (_form, _stale, { context }) => context(),
  });

  const newPage = {
    title: 'Create a developer',
    tab: 'developers',
    trail: { path: DEVELOPERS, label: 'All developers' },
  } as const;

  router.get(`${DEVELOPERS}/new`, (ctx) => {
    const values = { project_name: queryOf(ctx).get('project_name') ?? '', attribution: '' };
    operatorPage(ctx, newPage, <NewDeveloperForm submission={{ values, errors: {} }} />);
  });

  router.post(`${DEVELOPERS}/new`, async (ctx) => {
    const submission = parseNew(ctx);
    const { values, errors } = submission;
    if (errors.project_name !== undefined) {
      operatorPage(ctx, { ...newPage, status: 422 }, <NewDeveloperForm submission={submission} />);
      return;
    }
    const details = { projectName: values.project_name, attributionRequired: values.attribution === 'on' };
    const create = async (): Promise<number> => {
      const register = (): Promise<Developer> => createDeveloper(parts.db, details);
      return (await performAct(ctx, parts, { act: 'create_developer' }, register, nobody)).id;
    };
    const id = await created.forceFetch(hashOfForm(values.form).toString('hex'), { context: create });
    seeOther(ctx, `${DEVELOPERS}/${id}`);
  });
}

function NewDeveloperForm({ submission: { values, errors } }: { readonly submission: NewDeveloper }): VNode {
  return (
    <>
      <ErrorSummary errors={errors} />
      <p>Each developer has separate keys and limits. Next, send them a sign-in link, or create a key yourself.</p>
      <Form action={`${DEVELOPERS}/new`} label="Create developer" cancel={DEVELOPERS} isOnce>
        <ProjectName submission={{ values, errors }} hint="The developer sees it, also in responses from /api/v1/me." />
        <Checkbox
          name="attribution"
          label="The project must credit the catalogue where it shows its data"
          isChecked={values.attribution === 'on'}
        />
      </Form>
    </>
  );
}
