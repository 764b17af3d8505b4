package tare.nodetool;

import java.io.IOException;
import java.lang.reflect.Field;
import java.lang.reflect.InvocationTargetException;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.List;
import java.util.stream.Collectors;
import org.apache.cassandra.tools.NodeProbe;

/**
 * Several commands of nodetool over one connection, each printed as JSON by nodetool itself: a JVM a command, which each
 * reads all commands first, takes several times as long.
 *
 * <p>Arguments: JMX port, a file, then names of classes of {@code org.apache.cassandra.tools.nodetool}. A character RS
 * (U+001E) stands before what each prints, and before the file's content, which is read when all have been carried out.
 * Ends with 1 and the reason on standard error.
 *
 * <p>{@code TableStats} leaves out the server's own tables: they are most of all, each figure of each is a call, and what
 * the server keeps of itself says nothing of a load.
 */
public final class Several {
  private static final String COMMANDS = "org.apache.cassandra.tools.nodetool.";
  private static final String TABLES = "TableStats";
  private static final String SERVERS_OWN = "system";
  private static final char BEFORE_EACH = '\u001e';

  private Several() {}

  public static void main(String[] words) {
    int code = 0;
    try (NodeProbe probe = new NodeProbe("127.0.0.1", Integer.parseInt(words[0]))) {
      for (int n = 2; n < words.length; n++) {
        System.out.print(BEFORE_EACH);
        print(words[n], probe);
      }
      System.out.print(BEFORE_EACH);
      Files.copy(Paths.get(words[1]), System.out);
      System.out.flush();
    } catch (InvocationTargetException error) {
      code = failed(error.getCause());
    } catch (ReflectiveOperationException | IOException | RuntimeException error) {
      code = failed(error);
    }
    System.exit(code); // threads of RMI may live on
  }

  private static int failed(Throwable error) {
    System.err.println(error);
    return 1;
  }

  private static void print(String name, NodeProbe probe) throws ReflectiveOperationException {
    Class<?> type = Class.forName(COMMANDS + name);
    Object command = type.getDeclaredConstructor().newInstance();
    set(command, "outputFormat", "json"); // its option -F
    if (name.equals(TABLES)) {
      set(command, "ignore", true); // its option -i, and what that is said of
      set(command, "tableNames", serversOwn(probe));
    }
    type.getMethod("execute", NodeProbe.class).invoke(command, probe);
  }

  private static void set(Object command, String option, Object value) throws ReflectiveOperationException {
    Field field = command.getClass().getDeclaredField(option);
    field.setAccessible(true);
    field.set(command, value);
  }

  /** Keyspaces, as many of {@code system} and {@code system_...} as this release has. */
  private static List<String> serversOwn(NodeProbe probe) {
    return probe.getKeyspaces().stream()
        .filter(name -> name.split("_", 2)[0].equals(SERVERS_OWN))
        .collect(Collectors.toList());
  }
}
