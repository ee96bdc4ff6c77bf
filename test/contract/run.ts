import { compareDeployment } from './compare-deployment.js';

// Settings come from the environment, where other users of the machine cannot read them: BASE_URL, CATALOG_API_KEY, and
// TITLE_ID for a catalogue in which nothing has changed for a month.
process.exitCode = await compareDeployment(process.env, { out: console.log, err: console.error });
