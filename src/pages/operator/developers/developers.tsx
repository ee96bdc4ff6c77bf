import { LRUCache } from 'lru-cache';
import type { VNode } from 'preact';
import { nobody } from '../../../admission/change-callers.js';
import { createDeveloper, MAX_PROJECT_NAME, type Developer } from '../../../developers/developers.js';
import { readUsageByDeveloper } from '../../../usage/usage-totals.js';
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
import { queryOf, seeOther } from '../../parts/web/addresses.js';
import { Badge, Button, UserText } from '../../parts/content/components.js';
import { Table } from '../../parts/content/table.js';
import { ProjectName, PROJECT_NAME_FIELD } from '../../parts/forms/project-name.js';
import { ListSearch, Pager, readListPage, readListSearch } from '../../parts/forms/list-page.js';
import { performAct } from '../acts.js';
import type { PageRouter } from '../../parts/context.js';
import { COUNT_COLUMNS, countCells } from '../../parts/usage.js';
import type { OperatorParts } from '../context.js';
import { operatorPage } from '../layout.js';

/** Where the developers are listed. */
export const DEVELOPERS = '/developers';

/** Days whose requests are added up. */
export const SHOWN_DAYS = 30;

/** The most forms whose outcome is kept. */
const MAX_FORMS = 100;

const parseNew = formParser({
  ...ONCE_FIELD,
  ...PROJECT_NAME_FIELD,
  attribution: CHECKBOX,
});

type NewDeveloper = Submission<'project_name' | 'attribution'>;

/** Adds the list of developers, and the form that creates one. */
export function addDevelopers(router: PageRouter, parts: OperatorParts): void {
  router.get(DEVELOPERS, async (ctx) => {
    const search = readListSearch(ctx, DEVELOPERS, MAX_PROJECT_NAME);
    if (search === undefined) return;
    const developers = await readListPage(ctx, (slice) =>
      readUsageByDeveloper(parts.db, { days: SHOWN_DAYS, ...(search !== '' && { search }), ...slice }),
    );
    operatorPage(
      ctx,
      { title: 'Developers', tab: 'developers' },
      <>
        <div class="toolbar">
          <p>
            <Button href={`${DEVELOPERS}/new`} tone="primary" label="Create a developer" />
          </p>
          <ListSearch
            path={DEVELOPERS}
            search={search}
            label="Filter by ID, name or key prefix"
            maxLength={MAX_PROJECT_NAME}
          />
        </div>
        {developers.rows.length === 0 ? (
          <p class="empty">{search === '' ? 'There are no developers yet' : 'No developer matches'}</p>
        ) : (
          <Table
            caption={`Developers by requests in ${SHOWN_DAYS} days`}
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
        <Pager path={DEVELOPERS} search={search} page={developers} />
      </>,
    );
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
      <p>A developer has keys and limits of their own. Next, send them a sign-in link, or create a key yourself.</p>
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
