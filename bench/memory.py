"""Memory: does recall find a fact among 1,000 by a question in other words, and what counts as similar?

    python -m bench.memory            hit@5 and hit@1 of both sets of questions, and milliseconds
    python -m bench.memory --similar  cosines of pairs that say the same, look alike, or share a subject

Recall was tuned on the first twenty questions and on the names; the other twenty were only reported.
"""

from __future__ import annotations

import argparse
import json
import random
import tempfile
import time
from itertools import product
from pathlib import Path

from quire.config import DEFAULT, Config, override
from quire.library import Library

TUNED = [
    ("We deploy on Tuesdays.", "which day does a new version go out"),
    ("The API answers 429 after 20 requests a minute.", "how often may a client call before it is throttled"),
    ("Anna prefers tabs over spaces.", "how does Anna like code to be indented"),
    ("Backups are kept for 90 days in the Frankfurt bucket.", "how long can we still restore old data"),
    ("The staging password rotates every Monday at 6.", "when do credentials of the test environment change"),
    ("Invoices above 10,000 euros need two signatures.", "who has to approve a large bill"),
    (
        "Payment webhooks are retried five times with backoff.",
        "what happens if the receiver of an event is down",
    ),
    ("The mobile app drops support for Android 9 in March.", "when do old phones stop working"),
    ("Customers in Brazil are billed in reais.", "what currency do South American clients pay with"),
    ("The search index is rebuilt nightly at two.", "at what time is full text refreshed"),
    ("Feature flags live in the toggles table.", "where do we switch new functionality on and off"),
    ("Pull requests need one review from the platform team.", "who must look at a change before merging"),
    ("Logs are shipped to Loki and dropped after two weeks.", "how far back can I debug an incident"),
    ("The CEO wants weekly numbers by Friday noon.", "deadline for the report to the boss"),
    ("Maria is allergic to peanuts.", "what food must we avoid at the dinner with Maria"),
    ("Use UTC for all timestamps in the database.", "which time zone do we store"),
    ("The office in Porto closes in August.", "when is nobody at the Portuguese site"),
    ("PDF export times out for reports over 300 pages.", "why does downloading a long document fail"),
    ("Tom is on call during the first week of June.", "who answers the pager at the beginning of summer"),
    ("We chose PostgreSQL because of row level security.", "why this database and not another"),
]
HELD_OUT = [
    ("The build cache is wiped every Sunday night.", "why are compilations slow at the start of the week"),
    ("Kim's laptop is a ThinkPad with 64 GB of memory.", "what computer does Kim work on"),
    ("Refunds take up to ten working days.", "when does a customer get the money back"),
    ("The wifi code of the guest network is on the fridge.", "how do visitors get online"),
    ("All dates in file names are written year first.", "naming convention for documents with a day in them"),
    ("The demo account is reset each hour.", "why did the changes in the trial login vanish"),
    ("We do not use Redis because it lost sessions twice.", "reason against an in-memory store"),
    ("Translations are done by an agency in Lyon.", "who turns our texts into other languages"),
    ("The free plan allows three projects.", "limit for people who do not pay"),
    ("Sofia signs off the design of every screen.", "who approves the look of the interface"),
    ("Images wider than 2,000 pixels are scaled down on upload.", "what happens to big pictures"),
    ("The warehouse scanner speaks only ASCII.", "why are umlauts broken on shipping labels"),
    ("Certificates are renewed by a cron job on host atlas.", "what keeps TLS from expiring"),
    (
        "Quarterly planning starts two weeks before the quarter ends.",
        "when do we decide on goals for the next months",
    ),
    ("The user asked to be called Sam, not Samuel.", "how should I address the person"),
    ("Never run migrations between nine and five.", "at which hours may the schema not be changed"),
    ("Unit tests must not touch the network.", "may a check contact a server"),
    ("The canteen is vegetarian on Thursdays.", "on which day is there no meat for lunch"),
    ("Old invoices are archived on tape in the basement.", "where do paper trails from years ago lie"),
    ("Deleted accounts can be recovered for thirty days.", "can someone who left come back with their data"),
]
_SAYS = ("the card is blocked", "the token is old", "the file is locked", "the quota is used up")
_RUNS = ("the mailer", "the proxy", "the crawler", "the archive")
ALIKE_NAMES = (
    *(f"Ticket QX-{100 + n} is about the time when {_SAYS[n % 4]}." for n in range(40)),
    *(f"Error ERR_{4000 + n} means that {_SAYS[n % 4]}." for n in range(30)),
    *(f"Host node{n}.example.net runs {_RUNS[n % 4]}." for n in range(20)),
)
NAMED = [
    (ALIKE_NAMES[18], "QX-118"),
    (ALIKE_NAMES[5], "what is ticket QX-105"),
    (ALIKE_NAMES[33], "QX-133 status"),
    (ALIKE_NAMES[61], "ERR_4021"),
    (ALIKE_NAMES[47], "what does ERR_4007 mean"),
    (ALIKE_NAMES[53], "customer sees ERR_4013 at checkout"),
    (ALIKE_NAMES[77], "node7"),
    (ALIKE_NAMES[82], "what runs on node12.example.net"),
    ("Zsofia likes jazz.", "Zsofia"),
    ("The flag --frobnicate turns the old parser on.", "frobnicate option"),
    ("Call quire_purge() before close().", "quire_purge"),
    ("The Havelock contract is signed.", "Havelock"),
    ("Nagano is the code name of the next release.", "Nagano release"),
    ("max_inflight is 64 in production.", "max_inflight value"),
    ("Dr. Okonkwo reviews the medical texts.", "Okonkwo"),
    ("The variable LAMP_PORT is 8099.", "LAMP_PORT"),
    ("The Stellenbosch site uses solar power.", "Stellenbosch power"),
    ("Use the tag v2.31.4 for the hotfix.", "v2.31.4"),
    ("Piotr's birthday is 4 July.", "when is Piotr's birthday"),
    ("The rate limit of the export API is 20.", "export API rate limit"),
]
_PEOPLE = (
    "Ada Ben Carla Dmitri Elena Farid Greta Hugo Ines Jonas Keiko Liam Mona Nils Olga Pavel Quinn".split()
)
_SYSTEMS = (
    "billing checkout ledger importer mailer scheduler gateway catalog inventory frontend reporting chat"
    " recommender crawler archive notifier uploader proxy"
).split()
_PLACES = "Berlin Oslo Madrid Vienna Dublin Prague Milan Ghent Riga Basel Turin Malmö".split()
_DAYS = "Monday Wednesday Thursday Saturday".split()
_NUMBERS = (3, 8, 15, 40, 120, 250)
TEMPLATES = (
    ("{person} owns the {system} service.", ("person", "system")),
    ("The {system} service runs on {number} machines in {place}.", ("system", "number", "place")),
    ("{person} works from {place} every {day}.", ("person", "place", "day")),
    ("The {system} queue is drained by {number} workers.", ("system", "number")),
    ("{person} reviews changes to the {system} module.", ("person", "system")),
    ("The {system} cache expires after {number} minutes.", ("system", "number")),
    ("Tests of {system} take {number} seconds on the server in {place}.", ("system", "number", "place")),
    ("{person} asked for a dashboard of {system} errors.", ("person", "system")),
    ("The contract with the supplier in {place} ends after {number} months.", ("place", "number")),
    ("{person} wants summaries of at most {number} words.", ("person", "number")),
    ("The meeting about {system} is on {day} with {person}.", ("system", "day", "person")),
    ("Alerts of {system} go to the channel of {person}.", ("system", "person")),
    ("The {place} team decided to keep {system} in Python.", ("place", "system")),
    ("{system} reads its settings from /etc/{system}/{number}.toml.", ("system", "number")),
)
SAME = [
    ("We deploy on Tuesdays.", "Deployments happen every Tuesday."),
    ("The rate limit is 20 requests a minute.", "At most 20 requests per minute are allowed."),
    ("Anna prefers tabs over spaces.", "Anna likes tabs better than spaces."),
    ("Backups are kept for 90 days.", "We keep backups for 90 days."),
    ("Use UTC for all timestamps.", "All timestamps are in UTC."),
    ("The user wants short answers.", "The user prefers answers that are short."),
    ("Maria is allergic to peanuts.", "Maria has a peanut allergy."),
    ("The office closes at six.", "The office is open until six."),
    ("Tom is on call in June.", "In June, Tom is on call."),
    ("Invoices need two signatures.", "Two signatures are required on invoices."),
    ("We chose PostgreSQL for row level security.", "Row level security is why we use PostgreSQL."),
    ("The index is rebuilt nightly.", "Every night the index is rebuilt."),
    ("Feature flags live in the toggles table.", "The toggles table holds the feature flags."),
    ("Logs are dropped after two weeks.", "We delete logs after two weeks."),
    ("Pull requests need one review.", "One review is needed for each pull request."),
    ("The CEO wants numbers by Friday.", "By Friday the CEO needs the numbers."),
    ("Staging is reset every night.", "The staging environment is reset nightly."),
    ("Kim works from Oslo.", "Kim is based in Oslo."),
    ("The API key is in the vault.", "The vault has the API key."),
    ("Refunds take ten days.", "It takes ten days to get a refund."),
    ("The free plan allows three projects.", "With the free plan you can have three projects."),
    ("Sofia approves designs.", "Designs are approved by Sofia."),
    ("Never run migrations during the day.", "Migrations must not be run in daytime."),
    ("Unit tests must not use the network.", "The network is off limits for unit tests."),
    ("The canteen is vegetarian on Thursdays.", "On Thursdays the canteen serves no meat."),
    ("The demo account is reset each hour.", "Every hour the demo account is reset."),
    ("Certificates are renewed by cron.", "A cron job renews the certificates."),
    ("Translations come from an agency in Lyon.", "An agency in Lyon does our translations."),
    ("The mobile app needs Android 10.", "Android 10 is the minimum for the mobile app."),
    ("Customers in Brazil pay in reais.", "Brazilian customers are billed in reais."),
    ("Webhooks are retried five times.", "We retry webhooks five times."),
    ("Use snake_case for column names.", "Column names are written in snake_case."),
    ("The main branch is protected.", "Nobody can push directly to main: it is protected."),
    ("Paul leaves the company in May.", "Paul's last month at the company is May."),
    ("The printer is on the second floor.", "You find the printer on the second floor."),
    ("Reports are sent as PDF.", "We send reports in PDF format."),
    ("The cache lives for an hour.", "Cache entries expire after one hour."),
    ("Call the user Sam.", "The user wants to be called Sam."),
    ("Do not use Redis.", "Redis must not be used."),
    ("Passwords have at least 12 characters.", "A password needs 12 or more characters."),
    ("The build runs on Linux and macOS.", "We build on macOS and on Linux."),
    ("Images are scaled down on upload.", "On upload, images get scaled down."),
]
ALIKE = [
    ("The limit is 20.", "The limit is 30."),
    ("We deploy on Tuesdays.", "We deploy on Thursdays."),
    ("Tom is on call in June.", "Eva is on call in June."),
    ("Tom is on call in June.", "Tom is on call in July."),
    ("Use Redis for sessions.", "Do not use Redis for sessions."),
    ("The office is in Berlin.", "The office is in Munich."),
    ("Backups are kept for 90 days.", "Backups are kept for 30 days."),
    ("Anna prefers tabs.", "Anna prefers spaces."),
    ("The API is public.", "The API is not public."),
    ("Invoices need two signatures.", "Invoices need three signatures."),
    ("The main branch is protected.", "The main branch is unprotected."),
    ("Refunds take ten days.", "Returns take ten days."),
    ("The free plan allows three projects.", "The paid plan allows thirty projects."),
    ("Sofia approves designs.", "Sofia rejects designs."),
    ("Tests run on Linux.", "Tests run on Windows."),
    ("The cache lives for an hour.", "The cache lives for a minute."),
    ("Kim works from Oslo.", "Kim works from Riga."),
    ("Passwords have 12 characters.", "Passwords have 8 characters."),
    ("Logs are dropped after two weeks.", "Logs are dropped after two days."),
    ("The report is due on Friday.", "The report is due on Monday."),
    ("We use PostgreSQL 15.", "We use PostgreSQL 17."),
    ("Port 8080 is open.", "Port 8081 is open."),
    ("The server is in Frankfurt.", "The server is in Dublin."),
    ("Pull requests need one review.", "Pull requests need two reviews."),
    ("Maria is allergic to peanuts.", "Maria is allergic to milk."),
    ("The canteen is closed on Mondays.", "The canteen is closed on Fridays."),
    ("The build takes ten minutes.", "The build takes two minutes."),
    ("Reports are sent as PDF.", "Reports are sent as CSV."),
    ("Use camelCase for columns.", "Use snake_case for columns."),
    ("Paul leaves in May.", "Paul leaves in March."),
    ("Paul leaves in May.", "Petra leaves in May."),
    ("Webhooks are retried five times.", "Webhooks are never retried."),
    ("The printer is on the second floor.", "The printer is on the third floor."),
    ("Deploys need approval.", "Deploys need no approval."),
    ("Staging is reset every night.", "Staging is reset every week."),
    ("The key is in the vault.", "The key is in the safe."),
    ("Version 2 is supported.", "Version 1 is supported."),
    ("The app needs Android 10.", "The app needs Android 12."),
    ("Lunch is at noon.", "Lunch is at one."),
    ("Dark mode is on by default.", "Dark mode is off by default."),
]
SUBJECT = [
    ("We deploy on Tuesdays.", "Deployments need the approval of Ines."),
    ("The rate limit is 20 requests a minute.", "Requests are logged with their user id."),
    ("Anna prefers tabs over spaces.", "Anna leads the platform team."),
    ("Backups are kept for 90 days.", "Backups are encrypted with age."),
    ("Use UTC for all timestamps.", "Timestamps are stored in milliseconds."),
    ("The user wants short answers.", "The user works in the evening."),
    ("Maria is allergic to peanuts.", "Maria comes from Porto."),
    ("The office closes at six.", "The office has a bike shed."),
    ("Tom is on call in June.", "Tom wrote the importer."),
    ("Invoices need two signatures.", "Invoices are sent on the first of the month."),
    ("We chose PostgreSQL for row level security.", "PostgreSQL runs on the host atlas."),
    ("The index is rebuilt nightly.", "The index takes 4 GB."),
    ("Logs are dropped after two weeks.", "Logs are shipped to Loki."),
    ("Pull requests need one review.", "Pull requests are merged by squashing."),
    ("Staging is reset every night.", "Staging has its own domain."),
    ("Kim works from Oslo.", "Kim's laptop has 64 GB of memory."),
    ("Refunds take ten days.", "Refunds above 500 euros are checked by hand."),
    ("The free plan allows three projects.", "The free plan has no support."),
    ("Unit tests must not use the network.", "Unit tests run in random order."),
    ("The canteen is vegetarian on Thursdays.", "The canteen takes only cards."),
    ("Certificates are renewed by cron.", "Certificates are from Let's Encrypt."),
    ("The mobile app needs Android 10.", "The mobile app is written in Kotlin."),
    ("Webhooks are retried five times.", "Webhooks are signed with a secret."),
    ("Use snake_case for column names.", "Every table has a column id."),
    ("The printer is on the second floor.", "The printer needs a badge."),
    ("Reports are sent as PDF.", "Reports are made by the reporting service."),
    ("The cache lives for an hour.", "The cache is in memory."),
    ("Passwords have at least 12 characters.", "Passwords are hashed with argon2."),
    ("The build runs on Linux and macOS.", "The build uses four cores."),
    ("Images are scaled down on upload.", "Images are stored in a bucket."),
    ("Sofia approves designs.", "Sofia is on leave until May."),
    ("The demo account is reset each hour.", "The demo account has sample data."),
    ("Translations come from an agency in Lyon.", "Translations are stored in YAML."),
    ("Customers in Brazil pay in reais.", "Customers in Brazil get support in Portuguese."),
    ("Paul leaves the company in May.", "Paul knows the billing code best."),
    ("The API key is in the vault.", "The API has version 3 now."),
    ("The CEO wants numbers by Friday.", "The CEO reads only the first page."),
    ("Feature flags live in the toggles table.", "Feature flags are removed after a release."),
    ("Do not use Redis.", "Sessions are stored in cookies."),
    ("The main branch is protected.", "The main branch is built nightly."),
]


def filler(count: int) -> list[str]:
    """Entries of many subjects, the same in every run."""
    pools = {"person": _PEOPLE, "system": _SYSTEMS, "place": _PLACES, "day": _DAYS, "number": _NUMBERS}
    rng, made = random.Random(17), list[list[str]]()
    for template, names in TEMPLATES:
        values = list(product(*(pools[name] for name in names)))
        rng.shuffle(values)
        made.append([template.format(**dict(zip(names, one, strict=True))) for one in values])
    each = -(-count // len(made))
    return [text for some in made for text in some[:each]][:count]


def settings(model: str) -> Config:
    """Defaults with one model; `words` is none."""
    return override(DEFAULT, {"embed": {"model": {"words": "none"}.get(model, model)}})


def fill(path: Path, model: str) -> Library:
    """A library of 1,000 entries: the facts of all questions, and others."""
    library = Library.open(path, create=True, config=settings(model))
    texts = list(dict.fromkeys([*(fact for fact, _ in (*TUNED, *HELD_OUT, *NAMED)), *ALIKE_NAMES]))
    texts += filler(1000 - len(texts))
    random.Random(1).shuffle(texts)
    library.import_(json.dumps({"kind": "memory", "text": text}) for text in texts)
    return library


def hits(library: Library, pairs: list[tuple[str, str]]) -> tuple[int, int, float]:
    """How many facts are among the first five and first, and the median milliseconds."""
    five, first, spent = 0, 0, list[float]()
    for fact, question in pairs:
        began = time.perf_counter()
        found = [library.read(one.address).text for one in library.recall(question, limit=5).results]
        spent.append((time.perf_counter() - began) * 1000)
        five += fact in found
        first += found[:1] == [fact]
    return five, first, sorted(spent)[len(spent) // 2]


def recall_table(models: list[str]) -> None:
    """Print what recall finds."""
    print("| by | first 20: hit@5 | hit@1 | held out: hit@5 | hit@1 | names: hit@5 | hit@1 | ms |")
    print("|---|---|---|---|---|---|---|---|")
    for model in models:
        with tempfile.TemporaryDirectory() as folder, fill(Path(folder) / "l.db", model) as library:
            found = [hits(library, pairs) for pairs in (TUNED, HELD_OUT, NAMED)]
            shown = " | ".join(f"{five} | {first}" for five, first, _ in found)
            print(f"| {model} | {shown} | {found[1][2]:.0f} |", flush=True)


def similar_table(models: list[str]) -> None:
    """Print the shares of pairs whose cosines are at least a number."""
    import numpy as np

    print("| model | cosine | say the same | look alike | share a subject |")
    print("|---|---|---|---|---|")
    for model in models:
        with Library.open(":memory:", create=True, config=settings(model)) as library:
            embedder = library._any_embedder(model)
            of = {}
            for name, pairs in (("same", SAME), ("alike", ALIKE), ("subject", SUBJECT)):
                a, b = (np.array(embedder.embed_documents([p[at] for p in pairs])) for at in (0, 1))
                of[name] = (a * b).sum(1)
            for least in (0.6, 0.65, 0.7, 0.75, 0.8, 0.85, 0.9):
                shown = (f"{int((of[name] >= least).sum())} of {len(of[name])}" for name in of)
                print(f"| {model} | {least:.2f} | {' | '.join(shown)} |", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--similar", action="store_true", help="cosines of pairs, instead of recall")
    parser.add_argument("--models", nargs="*", default=["words", "static", "deep"])
    asked = parser.parse_args()
    if asked.similar:
        similar_table([model for model in asked.models if model != "words"])
    else:
        recall_table(asked.models)
