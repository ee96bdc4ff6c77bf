import { readFile } from 'node:fs/promises';
import type { Logger } from 'pino';
import type { Config } from '../config/settings.js';
import { OperatorError } from '../errors.js';
import type * as OpenTelemetry from '../platform/telemetry/tracing.js';

/**
 * Prepares to record traces, if the settings name a receiver for them. Only then OpenTelemetry is loaded. The receiver,
 * which may be down, is not contacted.
 *
 * @param packageRoot - the folder of this package's package.json
 * @throws OperatorError when OpenTelemetry's packages are not installed
 */
export async function openTracing(
  config: Config,
  packageRoot: string,
  log: Logger,
): Promise<OpenTelemetry.Tracing | undefined> {
  if (config.traceEndpoint === undefined) return undefined;
  const { Tracing } = await load();
  const { version } = JSON.parse(await readFile(`${packageRoot}/package.json`, 'utf8')) as { version: string };
  return new Tracing({
    endpoint: config.traceEndpoint,
    headers: config.traceHeaders ?? {},
    serviceName: config.traceServiceName,
    serviceVersion: version,
    sampler: config.traceSampler,
    ratio: config.traceRatio,
    onChange: (state, err) => {
      if (state === 'lost') log.warn({ err }, 'traces cannot be sent; their spans are dropped and counted');
      else log.info('traces are sent again');
    },
  });
}

async function load(): Promise<typeof OpenTelemetry> {
  try {
    return await import('../platform/telemetry/tracing.js');
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ERR_MODULE_NOT_FOUND') throw error;
    throw new OperatorError(
      'OTEL_EXPORTER_OTLP_ENDPOINT is set, but the OpenTelemetry packages are not installed. Install with optional ' +
        'dependencies (npm ci --include=optional), or leave it unset to record no traces.',
      { cause: error },
    );
  }
}
