import type { VNode } from 'preact';
import { render } from 'preact-render-to-string';
import type { PageRouter } from '../../parts/context.js';
import type { PublicParts } from '../context.js';
import { EXAMPLE_ORIGIN, EXAMPLES_LIFETIME_MS, withRecentExamples } from '../../../http/probes/recent-examples.js';
import { Representation } from '../../../http/response/representation.js';
import { cached } from '../../../platform/async/cached.js';
import { errorId, Heading } from '../../parts/content/heading.js';
import { HTML, renderPage, renderParts } from '../../parts/frame/page.js';
import { renderMarkdown, type Heading as MarkdownHeading } from '../../parts/content/markdown.js';
import { WithSidebar, type LinkGroup } from '../../parts/frame/with-sidebar.js';
import { Table } from '../../parts/content/table.js';
import { chaptersOf } from './chapters.js';
import { codeLinks, securityId } from './anchors.js';
import { operationsOf, tagsOf, type Contract } from './contract.js';
import { renderOperations } from './operations.js';
import { Headers, SharedResponses } from './responses.js';
import { Schemas } from './schemas.js';
import { Text, type ReferenceContext } from './text.js';

/** Adds the reference, `/docs`: everything in the contract. It is rendered once; later only its times are replaced. */
export function addReference(router: PageRouter, { contract, site }: Pick<PublicParts, 'contract' | 'site'>): void {
  const html = cached(async () => {
    const context = { contract, baseUrl: site.publicUrl(), linkCode: codeLinks(contract) };
    const chapters = renderMarkdown(chaptersOf(contract, site.guides), { linkCode: context.linkCode, rowId: errorId });
    const content = [
      await renderParts([<Introduction context={context} />]),
      await renderOperations(context),
      render(<div class="prose" dangerouslySetInnerHTML={{ __html: chapters.html }} />),
      await renderParts([
        <Security context={context} />,
        <SharedResponses context={context} />,
        <Headers context={context} />,
        <Schemas context={context} />,
        <Sdks />,
      ]),
    ];
    const description = 'Every operation, parameter, response and error of the API.';
    const rendered = renderPage(
      site,
      { title: 'API reference', section: 'docs', description },
      <WithSidebar label="Reference" groups={linkGroups(contract, chapters.headings)}>
        <div class="content" dangerouslySetInnerHTML={{ __html: content.join('') }} />
      </WithSidebar>,
    );
    return rendered.replaceAll(EXAMPLE_ORIGIN, site.publicUrl());
  }, Infinity);
  const page = cached(
    async () => new Representation(withRecentExamples(await html(), Date.now()), HTML, 'small'),
    EXAMPLES_LIFETIME_MS,
  );
  router.get('/docs', async (ctx) => (await page()).send(ctx, 'no-cache'));
}

/** @returns the links to the sections of the reference @param headings - of the chapters */
function linkGroups(contract: Contract, headings: readonly MarkdownHeading[]): readonly LinkGroup[] {
  const operations = operationsOf(contract);
  return [
    ...tagsOf(contract).groups.map(({ name }) => ({
      title: name,
      links: operations
        .filter(({ tags }) => tags.includes(name))
        .map(({ operationId, summary }) => [`#${operationId}`, summary] as const),
    })),
    { title: 'Basics', links: headings.map(({ id, text }) => [`#${id}`, text] as const) },
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

/** The basics before the first call: authentication, and the list of operations. */
function Introduction({ context: { contract, baseUrl, linkCode } }: { readonly context: ReferenceContext }): VNode {
  const { info, openapi } = contract;
  const { html } = renderMarkdown(info.description, { linkCode });
  return (
    <>
      <h1 id="introduction">API reference</h1>
      <p class="muted">
        {info.title} · Version {info.version} · OpenAPI {openapi} · <a href={info.license.url}>{info.license.name}</a> ·{' '}
        <a href="/openapi.yaml">YAML</a> · <a href="/openapi.json">JSON</a>
      </p>
      <div class="prose" dangerouslySetInnerHTML={{ __html: html }} />
      <p class="cluster">
        <span class="muted small">Base URL</span> <code>{baseUrl}</code>
      </p>
      <p>
        Send your <a href="/settings/keys">API key</a> with each request, as{' '}
        <code>Authorization: Bearer $CATALOG_API_KEY</code>. See <a href="#keys">Keys</a> for the other ways,{' '}
        <a href="#rate-limits">Rate limits</a>, and <a href="#errors">Errors</a> for each code.
      </p>
      <Table
        caption="Operations"
        columns={['Operation', 'Request']}
        rows={operationsOf(contract).map(({ operationId, summary, method, path }) => [
          <a href={`#${operationId}`}>{summary}</a>,
          <code>{`${method} ${path}`}</code>,
        ])}
      />
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
            <div class="field-head">
              <code>{name}</code>
              <ul class="bounds">
                {Object.entries(facts).map(([fact, value]) => (
                  <li key={fact}>
                    {fact} <code>{value}</code>
                  </li>
                ))}
              </ul>
            </div>
            <Text context={context} text={description} />
          </li>
        ))}
      </ul>
    </section>
  );
}

function Sdks(): VNode {
  return (
    <section aria-labelledby="sdks">
      <Heading level={2} id="sdks" text="SDKs and downloads" />
      <p>
        The contract is an OpenAPI document, as <a href="/openapi.yaml">YAML</a> and as <a href="/openapi.json">JSON</a>
        . You do not need a key to download it. Use a generator to turn the contract into a client in most languages;{' '}
        <a href="/docs/guides/generate-an-sdk">Generate an SDK</a> has complete programs.
      </p>
    </section>
  );
}
