import type { Knex } from 'knex';
import type { VNode } from 'preact';
import { findDeveloper } from '../../../developers/developers.js';
import { listEvents } from '../../../events/events.js';
import { isKeyPrefix } from '../../../keys/api-key.js';
import { isAccepted, type KeyRecord } from '../../../keys/key-record.js';
import { findKey } from '../../../keys/keys.js';
import { revokeKey } from '../../../keys/revoke.js';
import { Button, UserText } from '../../parts/content/components.js';
import { PageError } from '../../parts/frame/error-page.js';
import { EventTable } from '../../parts/events.js';
import { KeyFacts, RevokeForm } from '../../parts/keys.js';
import { BY_TIME, Pager, readListPage } from '../../parts/forms/list-page.js';
import { seeOther } from '../../parts/web/addresses.js';
import { redirectAndConfirm } from '../../parts/frame/notices.js';
import { performAct } from '../acts.js';
import type { PageContext, PageRouter } from '../../parts/context.js';
import type { OperatorParts } from '../context.js';
import { operatorKeyPath, operatorPage } from '../layout.js';
import { developerPath, pageOfDeveloper } from './developer.js';

/** Finds the key that the path of a request names. @throws PageError 404 */
async function keyOf(ctx: PageContext, db: Knex): Promise<KeyRecord> {
  const { prefix = '' } = ctx.params as { prefix?: string };
  const key = isKeyPrefix(prefix) ? await findKey(db, prefix) : undefined;
  if (key === undefined) throw new PageError(404, 'Not found', 'No key has this prefix.');
  return key;
}

/** Reads the content of the page of a key. @throws PageError 404 */
async function loadKey(ctx: PageContext, db: Knex) {
  const record = await keyOf(ctx, db);
  const { prefix: keyPrefix, developerId } = record;
  const [developer, events] = await Promise.all([
    findDeveloper(db, developerId),
    readListPage(ctx, BY_TIME, (part) => listEvents(db, { developerId, keyPrefix, ...part })),
  ]);
  return { record, developer, events };
}

function KeyPage({ record, developer, events }: Awaited<ReturnType<typeof loadKey>>): VNode {
  const project = <UserText text={developer.projectName} />;
  return (
    <>
      <KeyFacts record={record} more={{ Developer: <a href={developerPath(developer.id)}>{project}</a> }} />
      {isAccepted(record) && (
        <p>
          <Button href={`${operatorKeyPath(record.prefix)}/revoke`} tone="danger" label="Revoke key" />
        </p>
      )}
      <section>
        <h2 id="events">Events</h2>
        <EventTable events={events.rows} developer="Developer" isOfOneKey />
        <Pager page={events} />
      </section>
    </>
  );
}

/** Adds the page of a key of any developer, and the form that revokes it. */
export function addKey(router: PageRouter, parts: OperatorParts): void {
  const { db } = parts;

  router.get('/keys/:prefix', async (ctx) => {
    const shown = await loadKey(ctx, db);
    pageOfDeveloper(ctx, shown.developer, shown.record.prefix, <KeyPage {...shown} />);
  });

  router.get('/keys/:prefix/revoke', async (ctx) => {
    const record = await keyOf(ctx, db);
    const { prefix } = record;
    const path = operatorKeyPath(prefix);
    if (!isAccepted(record)) {
      seeOther(ctx, path);
      return;
    }
    operatorPage(
      ctx,
      { title: `Revoke ${prefix}`, tab: 'developers', trail: { path, label: prefix } },
      <RevokeForm record={record} />,
    );
  });

  router.post('/keys/:prefix/revoke', async (ctx) => {
    const { prefix, developerId } = await keyOf(ctx, db);
    const { wasRevoked } = await performAct(
      ctx,
      parts,
      { act: 'revoke_key', developer: developerId, key_prefix: prefix },
      () => revokeKey(db, prefix),
      () => [developerId],
    );
    redirectAndConfirm(ctx, operatorKeyPath(prefix), wasRevoked ? 'already_revoked' : 'revoked');
  });
}
