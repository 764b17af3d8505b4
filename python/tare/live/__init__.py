"""The live page: what a store holds and what is being done to it, shown on loopback, read only.

`now` and `herald`: what a running study reports beside its store. `look` and `view`: what there is to see.
`parts`: that as HTML and JSON. `watch`: what has changed, for all viewers at once. `app`, `guard`: who may see it.
`serving`, `beside`: the server, alone or beside a run.
"""
