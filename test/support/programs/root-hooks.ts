import { killPrograms } from '../program.js';

/** Called by mocha after all tests, or after those of each file where several files run at a time. */
export const mochaHooks = { afterAll: killPrograms };
