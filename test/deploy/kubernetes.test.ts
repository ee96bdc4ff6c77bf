import assert from 'node:assert/strict';
import { execFile } from 'node:child_process';
import { readdir, readFile, writeFile } from 'node:fs/promises';
import { join, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { load, loadAll } from 'js-yaml';
import type { Deployment } from 'kubernetes-types/apps/v1.js';
import type { HorizontalPodAutoscaler } from 'kubernetes-types/autoscaling/v2.js';
import type { CronJob, Job } from 'kubernetes-types/batch/v1.js';
import type { Container, ContainerPort, HTTPGetAction, PodSpec, Service } from 'kubernetes-types/core/v1.js';
import type { NetworkPolicy } from 'kubernetes-types/networking/v1.js';
import type { PodDisruptionBudget } from 'kubernetes-types/policy/v1.js';
import { readConfig } from '../../src/config/config.js';
import { SETTINGS, type Config } from '../../src/config/settings.js';
import { ROOT } from '../support/guides.js';
import { skipWithout } from '../support/programs/skip.js';
import { findProgram, KUBECTL } from '../support/programs/system-program.js';
import { temporaryFolder } from '../support/temporary-folder.js';
import { assertEnvironment, assertStopTime } from './environment.js';

const run = promisify(execFile);

const FOLDER = new URL('.deploy/kubernetes/', ROOT);
const BASE = new URL('base/', FOLDER);
const COPIES = new URL('components/copies/', FOLDER);
const OVERLAY = new URL('overlays/production/', FOLDER);

/** The connections that PostgreSQL leaves to others than superusers, by its default settings. */
const POSTGRES_CONNECTIONS = 97;

interface Output {
  readonly stdout: string;
}

interface Manifest {
  readonly apiVersion: string;
  readonly kind: string;
}

interface Kustomization {
  readonly resources: readonly string[];
  readonly configMapGenerator: readonly { readonly name: string; readonly literals: readonly string[] }[];
}

interface ServiceMonitor {
  readonly spec: { readonly selector: object; readonly endpoints: readonly { port: string; path: string }[] };
}

/** The manifests, of which there is one of each kind. */
interface Kinds {
  readonly Deployment: Deployment;
  readonly HorizontalPodAutoscaler: HorizontalPodAutoscaler;
  readonly Job: Job;
  readonly NetworkPolicy: NetworkPolicy;
  readonly PodDisruptionBudget: PodDisruptionBudget;
  readonly Service: Service;
  readonly ServiceMonitor: ServiceMonitor;
}

async function read(folder: URL, file: string): Promise<unknown> {
  return load(await readFile(new URL(file, folder), 'utf8'));
}

describe('the Kubernetes manifests', () => {
  let manifests: Manifest[];
  let pods: { readonly spec: PodSpec; readonly container: Container }[];
  let server: { readonly spec: PodSpec; readonly container: Container };
  /** The variables of the servers of the overlay. */
  let environment: Record<string, string>;
  let config: Config;

  before(async () => {
    const [base, overlay] = (await Promise.all(
      [BASE, OVERLAY].map((folder) => read(folder, 'kustomization.yaml')),
    )) as [Kustomization, Kustomization];
    for (const [folder, { resources }] of [[BASE, base] as const, [OVERLAY, overlay] as const]) {
      const files = (await readdir(folder)).filter((name) => name !== 'kustomization.yaml');
      assert.deepEqual(resources.filter((name) => name.endsWith('.yaml')).sort(), files.sort());
    }
    manifests = (await Promise.all([
      ...base.resources.map((file) => read(BASE, file)),
      read(OVERLAY, 'namespace.yaml'),
    ])) as Manifest[];
    pods = [find('Deployment'), find('Job')].map(({ spec }) => {
      const pod = spec?.template.spec ?? assert.fail('no pod');
      return { spec: pod, container: pod.containers[0] ?? assert.fail('no container') };
    });
    server = pods[0] ?? assert.fail('no server');
    const literals = [base, overlay].flatMap(({ configMapGenerator: [{ literals } = assert.fail('no settings')] }) =>
      literals.map((literal) => literal.split(/=(.*)/).slice(0, 2)),
    );
    environment = Object.fromEntries(literals) as Record<string, string>;
    config = readConfig(environment);
  });

  function find<Kind extends keyof Kinds>(kind: Kind): Kinds[Kind] {
    return (manifests.find((manifest) => manifest.kind === kind) ?? assert.fail(kind)) as unknown as Kinds[Kind];
  }

  /** Returns the number of a port of the server's container. */
  function portNamed(name: string | number | undefined): ContainerPort['containerPort'] | undefined {
    return server.container.ports?.find((port) => port.name === name)?.containerPort;
  }

  it('every manifest has the type that Kubernetes publishes for it', async () => {
    const types = fileURLToPath(new URL('node_modules/kubernetes-types/', ROOT));
    // The Prometheus Operator's kind is none of Kubernetes.
    const copies = await Promise.all(['cron-job.yaml', 'volume-claim.yaml'].map((file) => read(COPIES, file)));
    const known = [...manifests.filter(({ kind }) => kind !== 'ServiceMonitor'), ...(copies as Manifest[])];
    assert.equal(known.length, 9);
    const lines = known.map((manifest, i) => {
      const [group = '', version = ''] = manifest.apiVersion.replace(/^v1$/, 'core/v1').split('/');
      const type = `import('${types}${group.split('.')[0] ?? ''}/${version}').${manifest.kind}`;
      return `export const m${i}: ${type} = ${JSON.stringify(manifest, undefined, 1)};`;
    });
    const folder = await temporaryFolder();
    const options = {
      strict: true,
      noEmit: true,
      module: 'esnext',
      moduleResolution: 'bundler',
      lib: ['es2020'],
      types: [],
    };
    await writeFile(join(folder, 'manifests.ts'), lines.join('\n'));
    await writeFile(join(folder, 'tsconfig.json'), JSON.stringify({ compilerOptions: options }));
    const compiler = fileURLToPath(new URL('node_modules/typescript/bin/tsc', ROOT));
    const { stdout } = await run(process.execPath, [compiler, '-p', folder]).catch((error: unknown) => error as Output);
    assert.equal(stdout, '');
  });

  it('the servers and the migration have valid settings, and secrets from files', () => {
    for (const { container, spec } of pods) {
      const variables = container.env ?? [];
      assertEnvironment(variables.map(({ name }) => name));
      const [mount = assert.fail('no secrets')] = container.volumeMounts ?? [];
      assert.ok(
        variables.every(({ name, value }) => name.endsWith('_FILE') && value?.startsWith(`${mount.mountPath}/`)),
      );
      assert.ok(spec.volumes?.some((volume) => volume.name === mount.name && volume.secret !== undefined));
      assert.ok(variables.length > 0);
    }
    assertEnvironment(Object.keys(environment));
  });

  it('every pod runs under the restricted standard with a read-only root', () => {
    for (const { spec, container } of pods) {
      assert.deepEqual(spec.securityContext, { runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } });
      assert.deepEqual(container.securityContext, {
        allowPrivilegeEscalation: false,
        capabilities: { drop: ['ALL'] },
        readOnlyRootFilesystem: true,
      });
      assert.equal(spec.automountServiceAccountToken, false);
      assert.ok(
        container.resources?.requests?.memory !== undefined && container.resources.limits?.memory !== undefined,
      );
    }
  });

  it('every port and path is one that the server has, and a stop leaves the time to drain', () => {
    assert.equal(portNamed('http'), config.port);
    assert.equal(portNamed('metrics'), config.metricsAddress?.port);
    assert.deepEqual([config.host, config.metricsAddress?.host], ['0.0.0.0', '0.0.0.0']);
    const { startupProbe, readinessProbe, livenessProbe } = server.container;
    const probes = [startupProbe, readinessProbe, livenessProbe].map(
      (probe): Partial<HTTPGetAction> => probe?.httpGet ?? {},
    );
    assert.deepEqual(
      probes.map(({ path, port }) => [path, port]),
      [
        ['/livez', 'http'],
        ['/readyz', 'http'],
        ['/livez', 'http'],
      ],
    );
    const { ports = [] } = find('Service').spec ?? {};
    assert.deepEqual(
      ports.map(({ name, targetPort }) => [name, targetPort]),
      [
        ['http', 'http'],
        ['metrics', 'metrics'],
      ],
    );
    const monitored = find('ServiceMonitor').spec.endpoints;
    assert.deepEqual(
      monitored.map(({ port, path }) => [port, path]),
      [['metrics', '/metrics']],
    );
    const { ingress = [] } = find('NetworkPolicy').spec ?? {};
    const open = ingress.flatMap(({ ports = [] }) => ports.map(({ port }) => port));
    assert.deepEqual(open.map(portNamed), [config.port, config.metricsAddress?.port]);
    assertStopTime(server.spec.terminationGracePeriodSeconds ?? 0, environment.DRAIN_SECONDS);
    // Traffic leaves a server that fails its readiness probe before the server stops serving.
    const { periodSeconds = 0, failureThreshold = 0 } = readinessProbe ?? {};
    assert.ok(periodSeconds * failureThreshold < config.drainSeconds);
  });

  it('every selector matches the servers', () => {
    const labels = find('Deployment').spec?.template.metadata?.labels;
    const budget = find('PodDisruptionBudget');
    assert.deepEqual(find('Service').spec?.selector, labels);
    assert.deepEqual(budget.spec?.selector?.matchLabels, labels);
    assert.deepEqual(find('Deployment').spec?.selector.matchLabels, labels);
    assert.deepEqual(find('ServiceMonitor').spec.selector, { matchLabels: labels });
    assert.deepEqual(find('Service').metadata?.labels, labels);
  });

  it('the most servers fit into the connections of PostgreSQL', () => {
    const { maxReplicas = 0, minReplicas = 0, scaleTargetRef } = find('HorizontalPodAutoscaler').spec ?? {};
    assert.equal(scaleTargetRef?.name, find('Deployment').metadata?.name);
    assert.ok(minReplicas >= 2);
    const surge = Number(find('Deployment').spec?.strategy?.rollingUpdate?.maxSurge);
    const connections = (maxReplicas + surge) * (SETTINGS.databasePoolSize.fallback + 2);
    assert.ok(connections < POSTGRES_CONNECTIONS, String(connections));
  });

  it('kustomize builds the overlay, with its image, its namespace and the settings of both', async function () {
    const kubectl = findProgram(KUBECTL) ?? skipWithout('kubectl', this);
    const { stdout } = await run(kubectl, ['kustomize', fileURLToPath(OVERLAY)]);
    const built = loadAll(stdout) as (Manifest & { metadata: { name: string; namespace?: string }; data?: object })[];
    assert.equal(built.length, manifests.length + 1);
    for (const { kind, metadata } of built)
      assert.equal(metadata.namespace, kind === 'Namespace' ? undefined : 'catalog');
    const settings = built.find(({ kind }) => kind === 'ConfigMap') ?? assert.fail('no settings');
    assert.deepEqual(settings.data, environment);
    const [{ image, envFrom } = assert.fail('no server')] =
      (built.find(({ kind }) => kind === 'Deployment') as Deployment | undefined)?.spec?.template.spec?.containers ??
      [];
    assert.match(image ?? '', /^registry\.example\.com\/catalog-lookup-service:COMMIT$/);
    assert.equal(envFrom?.[0]?.configMapRef?.name, settings.metadata.name);
  });

  it('the component of copies publishes with the image of the overlay, and the servers serve what it publishes', async function () {
    const kubectl = findProgram(KUBECTL) ?? skipWithout('kubectl', this);
    const folder = await temporaryFolder();
    const from = (url: URL): string => relative(folder, fileURLToPath(url));
    const overlay = (await read(OVERLAY, 'kustomization.yaml')) as Kustomization;
    // JSON is YAML too.
    await writeFile(
      join(folder, 'kustomization.yaml'),
      JSON.stringify({ ...overlay, resources: [from(BASE)], components: [from(COPIES)] }),
    );
    const { stdout } = await run(kubectl, ['kustomize', folder]);
    const built = loadAll(stdout) as Manifest[];
    const job = built.find(({ kind }) => kind === 'CronJob') as CronJob | undefined;
    const deployment = built.find(({ kind }) => kind === 'Deployment') as Deployment | undefined;
    const [published, served] = [job?.spec?.jobTemplate.spec?.template.spec, deployment?.spec?.template.spec].map(
      (pod) => {
        const [container = assert.fail()] = pod?.containers ?? [];
        assert.match(container.image ?? '', /^registry\.example\.com\/catalog-lookup-service:COMMIT$/);
        assert.equal(container.securityContext?.readOnlyRootFilesystem, true);
        assertEnvironment((container.env ?? []).map(({ name }) => name));
        const mount = container.volumeMounts?.find(({ name }) => name === 'copies');
        const claim = pod?.volumes?.find(({ name }) => name === 'copies')?.persistentVolumeClaim?.claimName;
        return { container, path: mount?.mountPath, claim };
      },
    );
    assert.deepEqual([published?.path, published?.claim], [served?.path, served?.claim]);
    assert.equal(published?.container.args?.at(-1), published?.path);
    assert.equal(served?.container.env?.find(({ name }) => name === 'COPIES_DIR')?.value, served?.path);
  });
});
