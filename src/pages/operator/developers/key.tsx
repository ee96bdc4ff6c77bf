import type { Knex } from 'knex';
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
import { developerPath, trailTo } from './developer.js';

/** Finds the key that the path of a request names. @throws PageError 404 */
async function keyOf(ctx: PageContext, db: Knex): Promise<KeyRecord> {
  const { prefix = '' } = ctx.params as { prefix?: string };
  const key = isKeyPrefix(prefix) ? await findKey(db, prefix) : undefined;
  if (key === undefined) throw new PageError(404, 'Not found', 'No key has this prefix.');
  return key;
}

/** Adds the page of a key of any developer, and the form that revokes it. */
export function addKey(router: PageRouter, parts: OperatorParts): void {
  const { db } = parts;

  router.get('/keys/:prefix', async (ctx) => {
    const key = await keyOf(ctx, db);
    const { prefix, developerId } = key;
    const developer = await findDeveloper(db, developerId);
    const project = <UserText text={developer.projectName} />;
    const events = await readListPage(ctx, BY_TIME, (part) =>
      listEvents(db, { developerId, keyPrefix: prefix, ...part }),
    );
    operatorPage(
      ctx,
      { title: prefix, tab: 'developers', trail: trailTo(developer) },
      <>
        <KeyFacts record={key} more={{ Developer: <a href={developerPath(developerId)}>{project}</a> }} />
        {isAccepted(key) && (
          <p>
            <Button href={`${operatorKeyPath(prefix)}/revoke`} tone="danger" label="Revoke key" />
          </p>
        )}
        <section>
          <h2 id="events">Events</h2>
          <EventTable events={events.rows} developer="Developer" isOfOneKey />
          <Pager page={events} />
        </section>
      </>,
    );
  });

  router.get('/keys/:prefix/revoke', async (ctx) => {
    const key = await keyOf(ctx, db);
    const { prefix } = key;
    if (!isAccepted(key)) {
      seeOther(ctx, operatorKeyPath(prefix));
      return;
    }
    operatorPage(
      ctx,
      { title: `Revoke ${prefix}`, tab: 'developers', trail: { path: operatorKeyPath(prefix), label: prefix } },
      <RevokeForm record={key} />,
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
