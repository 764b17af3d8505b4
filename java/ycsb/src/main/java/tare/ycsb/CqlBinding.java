package tare.ycsb;

import com.datastax.driver.core.Cluster;
import com.datastax.driver.core.ConsistencyLevel;
import com.datastax.driver.core.HostDistance;
import com.datastax.driver.core.PoolingOptions;
import com.datastax.driver.core.PreparedStatement;
import com.datastax.driver.core.ResultSet;
import com.datastax.driver.core.Row;
import com.datastax.driver.core.Session;
import com.datastax.driver.core.SocketOptions;
import com.datastax.driver.core.exceptions.DriverException;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.Properties;
import java.util.Set;
import java.util.Vector;
import java.util.concurrent.ConcurrentHashMap;
import java.util.function.Supplier;
import java.util.regex.Pattern;
import java.util.stream.Collectors;
import java.util.stream.IntStream;
import site.ycsb.ByteIterator;
import site.ycsb.DB;
import site.ycsb.Status;
import site.ycsb.StringByteIterator;

/**
 * Cassandra by the 3.x driver; one session for all threads, every statement prepared once. It ends with the JVM: closing
 * it takes two seconds, which would be in YCSB's RunTime.
 *
 * <p>Properties: {@code hosts} (required, comma-separated), {@code port} (9042), {@code cassandra.keyspace} (ycsb),
 * {@code cassandra.username}, {@code cassandra.password}, {@code cassandra.readconsistencylevel} and
 * {@code cassandra.writeconsistencylevel} (ONE), {@code cassandra.coreconnections}, {@code cassandra.maxconnections},
 * {@code cassandra.connecttimeoutmillis}, {@code cassandra.readtimeoutmillis}; and {@code cassandra.createtable}, which
 * makes keyspace ({@code cassandra.replicationfactor}, 1) and table where they are not there, the table {@code WITH}
 * what {@code cassandra.tableoptions} says.
 */
public final class CqlBinding extends DB {
  private static final String KEY = "y_id";
  private static final Pattern NAME = Pattern.compile("[A-Za-z_][A-Za-z0-9_]*");
  private static final Map<String, PreparedStatement> STATEMENTS = new ConcurrentHashMap<>();
  private static Cluster cluster;
  private static Session session;

  private ConsistencyLevel readLevel;
  private ConsistencyLevel writeLevel;
  private List<String> allFields;

  @Override
  public void setProperties(Properties properties) {
    super.setProperties(properties);
    readLevel = ConsistencyLevel.valueOf(properties.getProperty("cassandra.readconsistencylevel", "ONE"));
    writeLevel = ConsistencyLevel.valueOf(properties.getProperty("cassandra.writeconsistencylevel", "ONE"));
    String prefix = properties.getProperty("fieldnameprefix", "field");
    int fields = Integer.parseInt(properties.getProperty("fieldcount", "10"));
    allFields = IntStream.range(0, fields).mapToObj(n -> name(prefix + n)).toList();
    synchronized (CqlBinding.class) {
      if (session == null) {
        connect(properties);
      }
    }
  }

  @Override
  public Status read(String table, String key, Set<String> fields, Map<String, ByteIterator> result) {
    List<String> names = names(fields);
    return carryOut(() -> {
      String query = "SELECT " + list(names) + " FROM " + name(table) + " WHERE " + KEY + " = ?";
      Row row = execute(query, readLevel, key).one();
      if (row == null) {
        return Status.NOT_FOUND;
      }
      take(row, names, result);
      return Status.OK;
    });
  }

  @Override
  public Status scan(String table, String startKey, int count, Set<String> fields,
                     Vector<HashMap<String, ByteIterator>> result) {
    List<String> names = names(fields);
    return carryOut(() -> {
      String query = "SELECT " + list(names) + " FROM " + name(table) + " WHERE token(" + KEY + ") >= token(?) LIMIT ?";
      for (Row row : execute(query, readLevel, startKey, count)) {
        HashMap<String, ByteIterator> values = new HashMap<>();
        take(row, names, values);
        result.add(values);
      }
      return result.isEmpty() ? Status.NOT_FOUND : Status.OK;
    });
  }

  /** In CQL an update of a row that is not there makes it, so this cannot tell. */
  @Override
  public Status update(String table, String key, Map<String, ByteIterator> values) {
    return insert(table, key, values);
  }

  @Override
  public Status insert(String table, String key, Map<String, ByteIterator> values) {
    List<String> names = names(values.keySet());
    return carryOut(() -> {
      String query = "INSERT INTO " + name(table) + " (" + KEY + ", " + list(names) + ") VALUES (?"
          + ", ?".repeat(names.size()) + ")";
      List<Object> given = new ArrayList<>();
      given.add(key);
      names.forEach(field -> given.add(values.get(field).toString()));
      execute(query, writeLevel, given.toArray());
      return Status.OK;
    });
  }

  @Override
  public Status delete(String table, String key) {
    return carryOut(() -> {
      execute("DELETE FROM " + name(table) + " WHERE " + KEY + " = ?", writeLevel, key);
      return Status.OK;
    });
  }

  private static void connect(Properties properties) {
    String hosts = properties.getProperty("hosts");
    if (hosts == null) {
      throw new IllegalStateException("the property hosts is missing");
    }
    Cluster.Builder builder = Cluster.builder().addContactPoints(hosts.split(","))
        .withPort(Integer.parseInt(properties.getProperty("port", "9042")))
        .withPoolingOptions(pooling(properties)).withSocketOptions(sockets(properties)).withoutJMXReporting();
    String user = properties.getProperty("cassandra.username");
    if (user != null && !user.isEmpty()) {
      builder.withCredentials(user, properties.getProperty("cassandra.password", ""));
    }
    cluster = builder.build();
    String keyspace = name(properties.getProperty("cassandra.keyspace", "ycsb"));
    if (Boolean.parseBoolean(properties.getProperty("cassandra.createtable", "false"))) {
      create(keyspace, properties);
    }
    session = cluster.connect(keyspace);
  }

  private static PoolingOptions pooling(Properties properties) {
    PoolingOptions options = new PoolingOptions();
    String core = properties.getProperty("cassandra.coreconnections");
    String most = properties.getProperty("cassandra.maxconnections");
    if (most != null) {
      options.setMaxConnectionsPerHost(HostDistance.LOCAL, Integer.parseInt(most));
    }
    if (core != null) {
      options.setCoreConnectionsPerHost(HostDistance.LOCAL, Integer.parseInt(core));
    }
    return options;
  }

  private static SocketOptions sockets(Properties properties) {
    SocketOptions options = new SocketOptions();
    String connect = properties.getProperty("cassandra.connecttimeoutmillis");
    String read = properties.getProperty("cassandra.readtimeoutmillis");
    if (connect != null) {
      options.setConnectTimeoutMillis(Integer.parseInt(connect));
    }
    if (read != null) {
      options.setReadTimeoutMillis(Integer.parseInt(read));
    }
    return options;
  }

  private static void create(String keyspace, Properties properties) {
    String table = name(properties.getProperty("table", "usertable"));
    String prefix = properties.getProperty("fieldnameprefix", "field");
    int fields = Integer.parseInt(properties.getProperty("fieldcount", "10"));
    int copies = Integer.parseInt(properties.getProperty("cassandra.replicationfactor", "1"));
    String columns = IntStream.range(0, fields).mapToObj(n -> name(prefix + n) + " varchar")
        .collect(Collectors.joining(", "));
    String options = properties.getProperty("cassandra.tableoptions", "");
    try (Session anywhere = cluster.connect()) {
      anywhere.execute("CREATE KEYSPACE IF NOT EXISTS " + keyspace
          + " WITH replication = {'class': 'SimpleStrategy', 'replication_factor': " + copies + "}");
      anywhere.execute("CREATE TABLE IF NOT EXISTS " + keyspace + "." + table + " (" + KEY + " varchar PRIMARY KEY, "
          + columns + ")" + (options.isEmpty() ? "" : " WITH " + options));
    }
  }

  private static ResultSet execute(String query, ConsistencyLevel level, Object... given) {
    PreparedStatement statement = STATEMENTS.computeIfAbsent(query, session::prepare);
    return session.execute(statement.bind(given).setConsistencyLevel(level));
  }

  private List<String> names(Set<String> fields) {
    return fields == null ? allFields : fields.stream().sorted().map(CqlBinding::name).toList();
  }

  private static String list(List<String> names) {
    return String.join(", ", names);
  }

  private static void take(Row row, List<String> names, Map<String, ByteIterator> values) {
    for (String field : names) {
      String value = row.getString(field);
      values.put(field, value == null ? null : new StringByteIterator(value));
    }
  }

  private static Status carryOut(Supplier<Status> work) {
    try {
      return work.get();
    } catch (DriverException e) {
      Complaints.say(e);
      return Status.ERROR;
    }
  }

  private static String name(String word) {
    if (!NAME.matcher(word).matches()) {
      throw new IllegalArgumentException("'" + word + "' is no plain name of a keyspace, table or field");
    }
    return word;
  }
}
