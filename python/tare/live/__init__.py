"""The live page: content of a store and current activity, shown on loopback, read-only.

`now` and `status_file`: what a running study reports beside its store. `look` and `view`: the data to show.
`parts`: this data as HTML and JSON. `watch`: changes, for all viewers at once. `app`, `guard`: routes and access.
`serving`: the server, alone or beside a run.
"""
