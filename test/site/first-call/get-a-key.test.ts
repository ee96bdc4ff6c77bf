import assert from 'node:assert/strict';
import { send } from '../../support/request.js';
import { startService } from '../../support/service.js';
import { startWithProvider } from '../settings/oidc-service.js';

/** @returns the address of the button and the steps of a landing page, as text */
async function readLanding(url: string): Promise<{ button: string | undefined; steps: string[] }> {
  const { text } = await send(url, '/', { headers: { accept: 'text/html' } });
  const [, list = ''] = /<ol class="steps">(.+?)<\/ol>/s.exec(text) ?? [];
  return {
    button: /<a class="button button-primary" href="([^"]+)">Get a key<\/a>/.exec(text)?.[1],
    steps: list
      .split('</li>')
      .map((step) => step.replaceAll(/<[^>]+>/g, ''))
      .filter(Boolean),
  };
}

describe('the way to a key on the landing page', () => {
  it('without an identity provider, it begins with the operator and their address', async () => {
    const service = await startService({ settings: { OPERATOR_CONTACT: 'https://catalog.example/support/' } });
    const { button, steps } = await readLanding(service.url);
    await service.stop();
    assert.equal(button, '#key');
    assert.equal(steps.length, 3);
    assert.equal(
      steps[0],
      'Ask for access. Contact the operator of this service at catalog.example/support. You get a link that signs you in to your project.',
    );
  });

  for (const { signUp, address, first } of [
    { signUp: 'on', address: '/settings/keys/new', first: / and name your project\./ },
    { signUp: 'off', address: '#key', first: /\. The first time, .+ Send them to the operator of this service, who/ },
  ] as const) {
    it(`with an identity provider and OIDC_SIGN_UP=${signUp}, it begins with a sign-in there`, async () => {
      const { service, provider } = await startWithProvider(signUp);
      const { button, steps } = await readLanding(service.url);
      await service.stop();
      await provider.stop();
      assert.equal(button, address);
      assert.match(steps[0] ?? '', /^Sign in with 127\.0\.0\.1:\d+/);
      assert.match(steps[0] ?? '', first);
    });
  }
});
