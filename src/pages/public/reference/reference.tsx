import type { VNode } from 'preact';
import type { PageRouter } from '../../parts/context.js';
import type { PublicParts } from '../context.js';
import { withRecentExamples } from '../../../http/probes/recent-examples.js';
import { Representation } from '../../../http/response/representation.js';
import { cached } from '../../parts/web/cached.js';
import { errorId, Heading } from '../../parts/content/heading.js';
import { HTML, renderPage, renderParts } from '../../parts/frame/page.js';
import { renderMarkdown, type Heading as MarkdownHeading } from '../../parts/content/markdown.js';
import { WithSidebar, type LinkGroup } from '../../parts/frame/with-sidebar.js';
import { SearchBox } from '../../parts/content/search-form.js';
import { codeLinks, securityId } from './anchors.js';
import { operationsOf, tagsOf, type Contract } from './contract.js';
import { renderOperations } from './operations.js';
import { Headers, SharedResponses } from './responses.js';
import { Schemas } from './schemas.js';
import { Text, type ReferenceContext } from './text.js';

/** How long the examples keep their times, in milliseconds. The times change by whole days. */
const EXAMPLES_LIFETIME_MS = 3_600_000;

/** Adds the reference, `/docs`: everything in the contract. It is rendered once; later only its times are replaced. */
export function addReference(router: PageRouter, { contract, site }: Pick<PublicParts, 'contract' | 'site'>): void {
  const html = cached(async () => {
    const context = { contract, baseUrl: site.publicUrl(), linkCode: codeLinks(contract) };
    const { headings, html: introduction } = renderIntroduction(context);
    const content = [
      await renderParts([<Introduction context={context} html={introduction} />]),
      await renderOperations(context),
      await renderParts([
        <Security context={context} />,
        <SharedResponses context={context} />,
        <Headers context={context} />,
        <Schemas context={context} />,
        <Sdks context={context} />,
      ]),
    ];
    const description = 'Every operation, parameter, response and error of the API.';
    return renderPage(
      site,
      { title: 'Reference', section: 'docs', description },
      <WithSidebar
        label="Reference"
        groups={linkGroups(contract, headings)}
        search={<SearchBox />}
        html={content.join('')}
      />,
    );
  }, Infinity);
  const page = cached(
    async () => new Representation(withRecentExamples(await html(), Date.now()), HTML, 'small'),
    EXAMPLES_LIFETIME_MS,
  );
  router.get('/docs', async (ctx) => (await page()).send(ctx, 'no-cache'));
}

/** @returns the links to the sections of the reference @param headings - of the introduction */
function linkGroups(contract: Contract, headings: readonly MarkdownHeading[]): readonly LinkGroup[] {
  const operations = operationsOf(contract);
  return [
    {
      title: 'Basics',
      links: [['#introduction', 'Introduction'], ...headings.map(({ id, text }) => [`#${id}`, text] as const)],
    },
    ...tagsOf(contract).groups.map(({ name }) => ({
      title: name,
      links: operations
        .filter(({ tags }) => tags.includes(name))
        .map(({ operationId, summary }) => [`#${operationId}`, summary] as const),
    })),
    {
      title: 'Details',
      links: [
        ['#security', 'Security schemes'],
        ['#responses', 'Shared responses'],
        ['#headers', 'Response headers'],
        ['#schemas', 'Schemas'],
        ['#sdks', 'SDKs and downloads'],
      ],
    },
  ];
}

/** @returns the description of the API and the chapters that no operation belongs to */
function renderIntroduction({ contract, linkCode }: ReferenceContext): ReturnType<typeof renderMarkdown> {
  const chapters = tagsOf(contract).chapters.map(({ name, description }) => `## ${name}\n\n${description}`);
  return renderMarkdown([contract.info.description, ...chapters].join('\n\n'), { linkCode, rowId: errorId });
}

function Introduction({ context, html }: { readonly context: ReferenceContext; readonly html: string }): VNode {
  const { info, openapi } = context.contract;
  return (
    <>
      <h1 id="introduction">{info.title}</h1>
      <p class="muted">
        Version {info.version} · OpenAPI {openapi} · <a href={info.license.url}>{info.license.name}</a> ·{' '}
        <a href="/openapi.yaml">YAML</a> · <a href="/openapi.json">JSON</a>
      </p>
      <p class="cluster">
        <span class="muted small">Base URL</span> <code>{context.baseUrl}</code>
      </p>
      <div class="prose introduction" dangerouslySetInnerHTML={{ __html: html }} />
    </>
  );
}

function Security({ context }: { readonly context: ReferenceContext }): VNode {
  return (
    <section aria-labelledby="security">
      <Heading level={2} id="security" text="Security schemes" />
      <p>Every operation accepts any one of these.</p>
      <ul class="fields">
        {Object.entries(context.contract.components.securitySchemes).map(([name, { description, ...facts }]) => (
          <li key={name} id={securityId(name)}>
            <p>
              <code>{name}</code>
            </p>
            <Text context={context} text={description} />
            <ul class="bounds">
              {Object.entries(facts).map(([fact, value]) => (
                <li key={fact}>
                  {fact} <code>{value}</code>
                </li>
              ))}
            </ul>
          </li>
        ))}
      </ul>
    </section>
  );
}

function Sdks({ context: { contract } }: { readonly context: ReferenceContext }): VNode {
  return (
    <section aria-labelledby="sdks">
      <Heading level={2} id="sdks" text="SDKs and downloads" />
      <p>
        The contract is an OpenAPI document, as <a href="/openapi.yaml">YAML</a> and as <a href="/openapi.json">JSON</a>
        . You do not need a key to download it. {contract.servers.map(({ description }) => description).join(' ')} Use a
        generator to turn the contract into a client in most languages;{' '}
        <a href="/docs/guides/generate-an-sdk">Generate an SDK</a> has complete programs.
      </p>
    </section>
  );
}
