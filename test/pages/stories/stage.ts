import { newDeveloper } from '../../support/keys/new-key.js';
import { startBrowser, type TestBrowser, type View, type WatchedPage } from '../../support/programs/browser.js';
import type { IdentityProvider } from '../../support/pages/identity-provider.js';
import { skipWithout } from '../../support/programs/skip.js';
import { CHROMIUM, findProgram } from '../../support/programs/system-program.js';
import { startService, type TestService } from '../../support/service.js';
import { addTitles } from '../../support/titles.js';
import { startProvider } from '../settings/oidc-service.js';
import { signInQuietly } from '../visits.js';

/** Where the stories take place. Its members throw before the suite's first hook has opened it. */
export interface Stage {
  /** At `localhost`, since passkeys need a name, with operator pages. Identities that nobody knows may sign up. */
  readonly service: TestService;
  readonly provider: IdentityProvider;
  readonly browser: TestBrowser;
  /** A new developer for each story, without keys. */
  readonly developerId: number;
  /** Opens a path in the profile that stories share: a new one takes more time than most of their steps. */
  visit(path: string, view?: Pick<View, 'width' | 'height'>): Promise<WatchedPage>;
  /** The same, signed in as {@link developerId} or as another developer. */
  signIn(path: string, view?: Pick<View, 'width' | 'height'>, developer?: number): Promise<WatchedPage>;
  /** Makes a profile that is closed after the story: for what a profile keeps, and for a browser without scripts. */
  newProfile(view?: View): Promise<WatchedPage>;
}

/** Starts what all stories share for a suite, and stops it afterwards. Call it first thing in `describe`. */
export function openStage(): Stage {
  let open: Pick<Stage, 'service' | 'provider' | 'browser'> | undefined;
  let developerId = NaN;
  let shared: WatchedPage | undefined;
  const own: WatchedPage[] = [];

  before(async function () {
    const program = findProgram(CHROMIUM) ?? skipWithout('Chromium', this);
    const { provider, settings } = await startProvider('on', 'localhost');
    const service = await startService({
      settings: { ...settings, HOST: 'localhost', METRICS_ADDRESS: '127.0.0.1:0' },
    });
    await addTitles(service.db, 3);
    open = { service, provider, browser: await startBrowser(program, service.url) };
  });

  after(async () => {
    await open?.browser.close();
    await open?.service.stop();
    await open?.provider.stop();
  });

  beforeEach(async () => (developerId = await newDeveloper(stage.service.db)));

  afterEach(async function () {
    for (const watched of own.splice(0)) await watched.close();
    if (this.currentTest?.state !== 'failed') return shared?.page.context().clearCookies();
    await shared?.close();
    shared = undefined;
  });

  function opened(): NonNullable<typeof open> {
    if (open === undefined) throw new Error('the stage is not open yet');
    return open;
  }

  async function prepare({ width = 1280, height = 800 }: View): Promise<WatchedPage> {
    shared ??= await stage.browser.newPage();
    // From one place of a page to another the browser loads nothing.
    if (shared.page.url().includes('#')) await shared.page.goto('about:blank');
    await shared.page.setViewportSize({ width, height });
    return shared;
  }

  const stage: Stage = {
    get service() {
      return opened().service;
    },
    get provider() {
      return opened().provider;
    },
    get browser() {
      return opened().browser;
    },
    get developerId() {
      return developerId;
    },
    async visit(path, view = {}) {
      const watched = await prepare(view);
      await watched.open(path);
      return watched;
    },
    async signIn(path, view = {}, developer = developerId) {
      const watched = await prepare(view);
      await signInQuietly(watched, stage.service, developer);
      await watched.open(path);
      return watched;
    },
    async newProfile(view) {
      const watched = await stage.browser.newPage(view);
      own.push(watched);
      return watched;
    },
  };
  return stage;
}
