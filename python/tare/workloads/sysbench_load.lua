-- Fills the tables with sysbench's own `prepare`, and sees to it that they are filled.
--
-- sysbench 1.0.20 ends a parallel command with exit code 0 whatever became of it, so a failed `prepare` looks
-- like a good one. Here the first failure ends the program with code 1. Then each table's rows are counted, and
-- its index statistics are made now, so that no run starts before they are there.

require("oltp_common")

local prepare = sysbench.cmdline.commands.prepare[1]

local function check_tables()
   local driver = sysbench.sql.driver()
   local connection = driver:connect()
   local analyze = driver:name() == "pgsql" and "ANALYZE " or "ANALYZE TABLE "
   local rows = sysbench.opt.table_size
   for i = sysbench.tid % sysbench.opt.threads + 1, sysbench.opt.tables, sysbench.opt.threads do
      local table_name = "sbtest" .. i
      connection:query(analyze .. table_name)
      local counted = tonumber(connection:query_row("SELECT COUNT(*) FROM " .. table_name))
      assert(counted == rows, string.format("%s has %s rows, not %d", table_name, tostring(counted), rows))
   end
end

local function reason_of(problem)
   if type(problem) == "table" then
      return string.format("error %s: %s", tostring(problem.sql_errno), tostring(problem.sql_errmsg))
   end
   return tostring(problem)
end

local function load()
   for _, step in ipairs({prepare, check_tables}) do
      local done, problem = pcall(step)
      if not done then
         io.stderr:write("loading failed: " .. reason_of(problem) .. "\n")
         os.exit(1)
      end
   end
end

sysbench.cmdline.commands = {load = {load, sysbench.cmdline.PARALLEL_COMMAND}}
