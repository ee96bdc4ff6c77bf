import type { VNode } from 'preact';
import { createDeveloper, MAX_PROJECT_NAME } from '../../developers/developers.js';
import { findKeyPrefix, looksLikeKey } from '../../keys/api-key.js';
import { printable } from '../../platform/text/plain-text.js';
import { readUsageByDeveloper, type DeveloperTotal } from '../../usage/usage-totals.js';
import type { PageRouter } from '../../site/context.js';
import { formParser, type Submission } from '../../site/delivery/form.js';
import { pageAddress, queryOf } from '../../site/delivery/page-address.js';
import { Badge, Table } from '../../site/layout/components.js';
import { ErrorSummary, Field, FormActions } from '../../site/layout/form-field.js';
import { formatNumber, UserText } from '../../site/layout/values.js';
import { FormOnce } from '../../site/settings/keys/key-forms.js';
import { Pager, readListPage, type ListPage } from '../../site/settings/list-page.js';
import { seeOther } from '../../site/sign-in/return-to.js';
import { once, performAct } from '../acts.js';
import type { OperatorParts } from '../context.js';
import { operatorPage } from '../layout.js';
import type { OperatorGuard } from '../sign-in.js';

/** Where the developers are listed. */
export const DEVELOPERS = '/developers';

/** Days whose requests are added up. */
export const SHOWN_DAYS = 30;

const parseNew = formParser({
  project_name: {
    schema: { minLength: 1, maxLength: MAX_PROJECT_NAME, allOf: [{ format: 'plain-text' }, { format: 'not-a-key' }] },
    message: (name: string) =>
      findKeyPrefix(name) === undefined
        ? `Enter a name of 1 to ${MAX_PROJECT_NAME} characters, without line breaks or other control characters.`
        : 'This looks like an API key. Project names are not secret: use another name.',
  },
  attribution: { schema: { enum: ['', 'on'] } },
});

type NewDeveloper = Submission<'project_name' | 'attribution'>;

/** Adds the list of developers, and the form that creates one. */
export function addDevelopers(router: PageRouter, parts: OperatorParts, requireOperator: OperatorGuard): void {
  router.get(
    DEVELOPERS,
    requireOperator(async (ctx) => {
      const wanted = queryOf(ctx).get('q') ?? '';
      if (looksLikeKey(wanted)) {
        // The secret leaves the address, and the prefix finds the key.
        const prefix = findKeyPrefix(wanted);
        seeOther(ctx, pageAddress(DEVELOPERS, prefix === undefined ? [] : [['q', prefix]]));
        return;
      }
      const search = printable(wanted.trim().slice(0, MAX_PROJECT_NAME));
      const developers = await readListPage(ctx, (slice) =>
        readUsageByDeveloper(parts.db, { days: SHOWN_DAYS, ...(search !== '' && { search }), ...slice }),
      );
      operatorPage(
        ctx,
        { title: 'Developers', tab: 'developers' },
        <DeveloperList developers={developers} search={search} />,
      );
    }),
  );

  const newPage = {
    title: 'Create a developer',
    tab: 'developers',
    trail: { path: DEVELOPERS, label: 'All developers' },
  } as const;

  router.get(
    `${DEVELOPERS}/new`,
    requireOperator((ctx) => {
      const values = { project_name: queryOf(ctx).get('project_name') ?? '', attribution: '' };
      operatorPage(ctx, newPage, <NewDeveloperForm submission={{ values, errors: {} }} />);
    }),
  );

  router.post(
    `${DEVELOPERS}/new`,
    requireOperator(async (ctx) => {
      const submission = parseNew(ctx);
      const { values, errors } = submission;
      if (errors.project_name !== undefined) {
        operatorPage(ctx, { ...newPage, status: 422 }, <NewDeveloperForm submission={submission} />);
        return;
      }
      await once(ctx, async () => {
        const details = { projectName: values.project_name, attributionRequired: values.attribution === 'on' };
        const { result } = await performAct(
          ctx,
          parts,
          { act: 'create_developer' },
          (db) => createDeveloper(db, details),
          () => false,
        );
        return `${DEVELOPERS}/${result.id}`;
      });
    }),
  );
}

interface DeveloperListProps {
  readonly developers: ListPage<DeveloperTotal>;
  /** What the list is filtered by; empty for all developers. */
  readonly search: string;
}

function DeveloperList({ developers, search }: DeveloperListProps): VNode {
  return (
    <>
      <div class="toolbar">
        <p>
          <a class="button button-primary" href={`${DEVELOPERS}/new`}>
            Create a developer
          </a>
        </p>
        <form class="filter" method="get" action={DEVELOPERS}>
          <label for="search">ID, name or key prefix</label>
          <input class="input" id="search" name="q" value={search} maxLength={MAX_PROJECT_NAME} autocomplete="off" />
          <button class="button" type="submit">
            Search
          </button>
          {search !== '' && <a href={DEVELOPERS}>Show all</a>}
        </form>
      </div>
      {developers.rows.length === 0 ? (
        <p class="empty">{search === '' ? 'There are no developers yet' : 'No developer matches'}</p>
      ) : (
        <Table
          caption={`Developers by requests in ${SHOWN_DAYS} days`}
          hasCards
          columns={[
            'Developer',
            { label: `Requests in ${SHOWN_DAYS} days`, numeric: true },
            { label: 'Served', numeric: true },
            { label: 'Refused', numeric: true },
            { label: 'Failed', numeric: true },
          ]}
          rows={developers.rows.map(({ developerId, projectName, suspendedAt, served, refused, failed }) => [
            <span class="developer-name">
              <a href={`${DEVELOPERS}/${developerId}`}>
                <UserText text={projectName} />
              </a>{' '}
              <span class="muted small">ID {developerId}</span>{' '}
              {suspendedAt !== null && <Badge tone="danger">Suspended</Badge>}
            </span>,
            formatNumber(served + refused + failed),
            formatNumber(served),
            formatNumber(refused),
            formatNumber(failed),
          ])}
        />
      )}
      <Pager path={pageAddress(DEVELOPERS, search === '' ? [] : [['q', search]])} page={developers} />
    </>
  );
}

function NewDeveloperForm({ submission: { values, errors } }: { readonly submission: NewDeveloper }): VNode {
  return (
    <>
      <ErrorSummary errors={[{ id: 'project-name', message: errors.project_name }]} />
      <p>A developer has keys and limits of their own. Next, send them a sign-in link, or create a key yourself.</p>
      <FormOnce action={`${DEVELOPERS}/new`}>
        <Field
          id="project-name"
          name="project_name"
          label="Project name"
          hint="The developer sees it, also in responses from /api/v1/me."
          // A key is not shown again.
          value={findKeyPrefix(values.project_name) === undefined ? values.project_name.slice(0, MAX_PROJECT_NAME) : ''}
          error={errors.project_name}
          required
          maxLength={MAX_PROJECT_NAME}
        />
        <label class="checkbox">
          <input
            type="checkbox"
            name="attribution"
            value="on"
            checked={values.attribution === 'on'}
            autocomplete="off"
          />
          <span>The project must credit the catalogue where it shows its data</span>
        </label>
        <FormActions label="Create developer" cancel={DEVELOPERS} />
      </FormOnce>
    </>
  );
}
