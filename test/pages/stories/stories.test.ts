import { keyStories } from './keys.js';
import { looks } from './looks.js';
import { passkeyStories } from './passkeys.js';
import { providerStories } from './provider.js';
import { readingStories } from './reading.js';
import { openStage } from './stage.js';
import { tryingStories } from './trying.js';

// One suite, since a service and a browser of its own for each part would take more time than its stories.
describe('a person in Chromium', () => {
  const stage = openStage();

  describe('who looks at the pages', () => looks(stage));
  describe('who reads the documentation', () => readingStories(stage));
  describe('who tries the operations', () => tryingStories(stage));
  describe('who manages keys', () => keyStories(stage));
  describe('who signs in at the identity provider', () => providerStories(stage));
  describe('who has a passkey', () => passkeyStories(stage));
});
